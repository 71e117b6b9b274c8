"""What all pictures are drawn with."""

from __future__ import annotations

from xml.sax.saxutils import escape

__all__ = ["INK", "SANS", "words"]

INK = "#2e2a24"
SERIF, SANS = "Georgia, serif", "system-ui, sans-serif"


def words(
    x: float,
    y: float,
    size: int,
    text: str,
    colour: str = INK,
    anchor: str = "start",
    weight: str = "normal",
    font: str = SERIF,
) -> str:
    """A line of text in an SVG."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}" font-family="{font}">{escape(text)}</text>'
    )
