"""Write the encoding tables of docs/games/showdown.md from the schema; with --check, only compare them."""

from __future__ import annotations

import sys
from pathlib import Path

from maple.games.showdown.schema import load_schema

PAGE = Path(__file__).resolve().parents[1] / "docs" / "games" / "showdown.md"
BEGIN, END = "<!-- schema: begin -->", "<!-- schema: end -->"


def tables() -> str:
    schema = load_schema()
    lines = [f"A view is {schema.bytes} bytes; layout `{schema.hash}`.", ""]
    for group in schema.groups.values():
        about = f": {group.about}" if group.about else ""
        lines += [
            f"**{group.name}** × {group.repeat}{about}",
            "",
            "| field | values | source | meaning |",
            "|---|---|---|---|",
        ]
        for field in group.fields.values():
            kind = f"{field.count} × u{8 * field.size}"
            lines.append(f"| {field.name} | {kind} | {field.source} | {field.about} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    wanted = f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"
    if "--check" in sys.argv:
        if PAGE.read_text() != wanted:
            sys.stderr.write(f"{PAGE.name} does not say what schema.json does; run: python tools/describe_schema.py\n")
            return 1
        return 0
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
