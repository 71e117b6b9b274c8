"""`maple compare`: whether a speed-up is adopted."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from maple.cli.options import JsonOption, SetOption
from maple.cli.output import notes, print_json, print_table, results
from maple.cli.sitting import compile_kernels
from maple.core.config import Config
from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.games import entry, make_game

__all__ = ["compare", "side_config"]

DEFAULT = "default"
SideHelp = "A preset, a YAML file, key=value settings, or several of these in quotes; `default` for none."


def side_config(game: str, side: str, common: list[str] | None) -> Config:
    """Read `speed`, `my.yml`, `ppo.epochs=1` or `"speed ppo.epochs=1 threads=2"`."""
    words = shlex.split(side)
    presets = [word for word in words if "=" not in word and word != DEFAULT]
    if not words or len(presets) > 1:
        raise ConfigError(f"{side!r} names {len(presets)} presets; write one preset or file, and settings as key=value")
    settings = [*(common or []), *(word for word in words if "=" in word)]
    return load_config(game, presets[0] if presets else None, settings, entry(game).defaults)


def _show(found: dict[str, Any]) -> None:
    def interval(bounds: list[float | None], form: str) -> str:
        return " … ".join("?" if bound is None else format(bound, form) for bound in bounds)

    def row(name: str, base: float, candidate: float, diff: float, bounds: list[float | None]) -> list[str]:
        return [name, f"{base:,.3f}", f"{candidate:,.3f}", f"{diff:+.3f}", interval(bounds, "+.3f")]

    speed = found["steps_per_s"]  # both are there: a seed has at least one pair of slices
    rows = [
        [
            "steps/s",
            f"{speed['base']:,.0f}",
            f"{speed['candidate']:,.0f}",
            f"× {found['throughput_ratio']:.3f}",
            interval(found["throughput_ratio_ci95"], ".3f"),
        ],
        [
            f"{found['strength_metric']} {'against each other' if found['against'] else 'on the same games'}",
            "",
            "",
            f"{found['strength_diff']:+.3f}",
            interval(found["strength_diff_ci95"], "+.3f"),
        ],
    ]
    rows += [row(n, f["base"], f["candidate"], f["diff"], f["ci95"]) for n, f in found["figures"].items()]
    when = found["time_to_strength"]
    ratio = "" if when["ratio"] is None else f"{'at most ' * when['at_most']}× {when['ratio']:.2f}"
    got_there = [f"{when['reached'][side]} of {when['reached']['seeds']} seeds" for side in ("base", "candidate")]
    rows.append(["time to the base's strength", *got_there, ratio, interval(when["ci95"], ".2f")])
    title = f"{found['seeds']} seeds, {found['games']:,} games, {found['slice_pairs']} pairs of slices"
    print_table(title, ["figure", "base", "candidate", "difference", "95 % interval"], rows)
    more = f": needs {found['needs_more_games']:,} more games" if found["verdict"] == "undecided" else ""
    results.print(f"[bold]{found['verdict']}{more}[/] ({found['reason']})", soft_wrap=True)
    if "bisect" in found:
        setting = found["bisect"]["take_back"]
        results.print(f"take back {setting}" if setting else "no single setting is to blame", soft_wrap=True)
        for skipped in found["bisect"]["skipped"]:
            results.print(f"not tried: {skipped['setting']}, which cannot be taken back alone", soft_wrap=True)


def compare(
    base: Annotated[str, typer.Argument(help=SideHelp, metavar="BASE")],
    candidate: Annotated[str, typer.Argument(help="The same for the candidate.", metavar="CANDIDATE")],
    game: Annotated[str, typer.Option(help="The game; `maple games` lists them.")] = "ofc",
    settings: SetOption = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="Training of each side and seed.")] = 30.0,
    seeds: Annotated[int, typer.Option(min=3, max=100, help="Training seeds at most; clear cases end early.")] = 6,
    pairs: Annotated[int, typer.Option(min=3, help="Slices of each side and seed.")] = 6,
    hands: Annotated[int, typer.Option(min=30, help="Hands of each match.")] = 3000,
    against: Annotated[str, typer.Option(help="Fixed opponents, by commas.")] = "random",
    speed_up: Annotated[float, typer.Option(help="Throughput ratio that is asked for.")] = 1.10,
    margin: Annotated[
        float | None,
        typer.Option(
            min=0, help="Strength that it may cost [default: the game's; of an env, 2 % of the base's result]."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first of the training seeds.")] = 0,
    take_back: Annotated[bool, typer.Option("--bisect", help="If rejected, find the setting to take back.")] = False,
    json: JsonOption = False,
) -> None:
    """Decide whether a candidate's settings are adopted: faster by a tenth, and no weaker by more than the margin.

    Both are trained in turns from the same seeds, then play each other and fixed opponents on the same deals. Exit
    code 0 to adopt, 1 to reject, 3 if it is not clear yet.

    - `maple compare default speed --set algo=ppo`
    - `maple compare "speed threads=1" "speed threads=2"`
    - `maple compare default mine.yml --bisect --json`
    """
    from maple.bench.compare import Plan, bisect, check_sides, two_sides
    from maple.bench.compare import compare as decide
    from maple.bench.gate import Limits
    from maple.bench.measure import machine_lock

    sides = [side_config(game, side, settings) for side in (base, candidate)]
    spec = make_game(game, sides[0].game).spec
    names = tuple(name.strip() for name in against.split(","))
    limits = Limits.of(spec.metric, margin, speed_up, seeds)
    plan = Plan(limits, seconds, pairs, hands, max(30, hands // 3), names, seed)
    check_sides(sides[0], sides[1], plan)
    for config in sides:
        compile_kernels(config, names)
    with machine_lock(notes.print), two_sides() as processes, notes.status("comparing") as status:

        def tell(text: str) -> None:
            status.update(text)
            if "throughput" in text or "taking back" in text:
                notes.print(text, soft_wrap=True)

        found = decide(processes, sides[0], sides[1], plan, tell)
        content = found.as_json()
        if take_back and found.verdict.verdict == "reject":
            content["bisect"] = bisect(processes, sides[0], sides[1], plan, tell)
    if json:
        print_json(content)
    else:
        _show(content)
    raise typer.Exit(found.verdict.exit_code)
