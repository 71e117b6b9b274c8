"""`maple tune`: the settings that are fastest on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple.cli.options import AlgoOption, GameArgument, JsonOption, PresetOption, SeedOption, SetOption
from maple.cli.output import notes, print_json, print_table, results
from maple.cli.progress import telling
from maple.cli.sitting import compile_kernels
from maple.core.config import assign, flat
from maple.core.presets import preset_settings
from maple.core.sources import load_config
from maple.games import entry

if TYPE_CHECKING:
    from maple.bench.tune import Tried

__all__ = ["tune"]

BASE = "speed"


def tune(
    game: GameArgument,
    seconds: Annotated[float, typer.Option(min=2, help="How long to try settings.")] = 60.0,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    name: Annotated[str, typer.Option(help="The preset to write: --preset NAME then uses it.")] = "tuned",
    learning: Annotated[
        bool,
        typer.Option(
            "--learning",
            help="Also minibatch, and epochs or updates; kept only if faster and not rejected by maple compare.",
        ),
    ] = False,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Find the tables, threads and workers with which this machine trains a game fastest, and write them as a preset.

    - `maple tune ofc` and then `maple train ofc --preset tuned`
    - `maple tune ofc --algo ppo --seconds 120 --learning`
    - `maple tune my_package.my_module:make_env` (workers too)
    """
    from maple.bench.measure import machine, machine_lock
    from maple.bench.tune import Space
    from maple.bench.tune import tune as find
    from maple.bench.tune_learning import Learned, improve_learning
    from maple.core.cores import available_cores

    config = load_config(game, preset or BASE, settings, entry(game).defaults, {"algo": algo, "seed": seed})
    compile_kernels(config)
    tree = _settings(preset or BASE, game, settings, algo)
    with machine_lock(notes.print):
        with telling(f"tuning {game} for {seconds:g} s") as tell:
            race_s = seconds / 2 if learning else seconds
            space = Space.of(config, available_cores())
            tried = find(config, space, race_s, lambda rows: tell(_line(game, rows)))
        best = tried[0].setting.within(config)
        path = _write(game, name, tree, flat(best))  # what comes now may fail or be stopped
        learned = Learned()
        if learning:
            notes.print(f"{tried[0].setting} it is; wrote {path}", soft_wrap=True)
            with telling("trying ways to learn") as tell:
                learned = improve_learning(tried[0].setting.of(config), seconds - race_s, tell)
            _write(game, name, tree, learned.kept)
    found: dict[str, Any] = {"game": game, "preset": name, "path": path, **best, "learning": asdict(learned)}
    found["tried"] = [
        {
            "setting": str(row.setting),
            **row.setting.as_dict(),
            "steps_per_s": row.median,
            "of_the_best": row.ratio_to(tried[0]),
            "slices": len(row.speeds),
        }
        for row in tried
    ]
    found |= {"seed": config.seed, "machine": machine()}
    if json:
        print_json(found)
        return
    _show(found)


def _settings(preset: str, game: str, settings: list[str] | None, algo: str | None) -> dict[str, Any]:
    """What the race begins with, as a preset holds it."""
    tree = preset_settings(preset, game)
    for text in settings or []:
        key, _, value = text.partition("=")
        assign(tree, key.strip(), value.strip())
    if algo:
        assign(tree, "algo", algo)
    return tree


def _write(game: str, name: str, tree: dict[str, Any], chosen: dict[str, Any]) -> str:
    """Add what was chosen to a preset's settings and write it; returns where it is."""
    from maple.bench.tune import write_preset

    for key, value in chosen.items():
        assign(tree, key, str(value))
    return write_preset(game, name, tree, f"written by maple tune {game}")


def _line(game: str, rows: list[Tried]) -> str:
    best = max(rows, key=lambda row: row.median)
    racing = sum(row.racing and bool(row.speeds) for row in rows)
    return (
        f"tuning {game}: {sum(len(row.speeds) for row in rows)} slices, {racing} settings in the race, best so far "
        f"{best.setting} ({best.median:,.0f} steps/s)"
    )


def _show(found: dict[str, Any]) -> None:
    rows = [
        [r["setting"], f"{r['steps_per_s']:,.0f}", f"{r['of_the_best']:.2f}", str(r["slices"])] for r in found["tried"]
    ]
    print_table(
        f"{found['game']}: what was tried, the best first",
        ["setting", "steps/s", "of the best", "slices"],
        rows,
    )
    for row in found["learning"]["tried"]:
        results.print(
            f"{row['setting']}: × {row['throughput_ratio']:.2f}, {row['verdict']} ({row['reason']}), "
            f"{'kept' if row['kept'] else 'not kept'}",
            soft_wrap=True,
        )
    results.print(f"wrote {found['path']}; use it with --preset {found['preset']}", soft_wrap=True)
