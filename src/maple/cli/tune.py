"""`maple tune`: the settings that are fastest on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple.cli.options import AlgoOption, GameArgument, JsonOption, PresetOption, SeedOption, SetOption
from maple.cli.output import notes, print_json, print_table, results
from maple.cli.sitting import compile_kernels
from maple.core.config import Config, DqnConfig, assign, flat, preset_settings
from maple.core.sources import load_config
from maple.games import entry, make_game

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
            "--learning", help="Also minibatch and epochs, kept only if faster and not rejected by maple compare."
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
    from maple.bench.tune import Space, write_preset
    from maple.bench.tune import tune as find
    from maple.core.cores import available_cores

    config = load_config(game, preset or BASE, settings, entry(game).defaults, {"algo": algo, "seed": seed})
    compile_kernels(config)
    with machine_lock(notes.print):
        with notes.status(f"tuning {game} for {seconds:g} s") as status:
            race_s = seconds / 2 if learning else seconds
            space = Space.of(make_game(game, config.game), available_cores())
            tried = find(config, space, race_s, lambda rows: status.update(_line(game, rows)))
        best = tried[0].setting.as_dict()
        kept = _learning(tried[0].setting.of(config), seconds / 2) if learning else {"kept": {}, "tried": []}
    tree = preset_settings(preset or BASE, game)
    for text in settings or []:
        key, _, value = text.partition("=")
        assign(tree, key.strip(), value.strip())
    chosen = {**({"algo": algo} if algo else {}), **flat(best), **kept["kept"]}
    for key, value in chosen.items():
        assign(tree, key, str(value))
    path = write_preset(game, name, tree, f"written by maple tune {game}")
    found: dict[str, Any] = {"game": game, "preset": name, "path": path, **best, "learning": kept}
    found["tried"] = [
        {"setting": str(row.setting), **row.setting.as_dict(), "steps_per_s": row.median, "slices": len(row.speeds)}
        for row in tried
    ]
    found |= {"seed": config.seed, "machine": machine()}
    if json:
        print_json(found)
        return
    _show(found)


def _line(game: str, rows: list[Tried]) -> str:
    best = max(rows, key=lambda row: row.median)
    racing = sum(row.racing for row in rows)
    return (
        f"tuning {game}: {sum(len(row.speeds) for row in rows)} slices, {racing} settings in the race, best so far "
        f"{best.setting} ({best.median:,.0f} steps/s)"
    )


def _show(found: dict[str, Any]) -> None:
    top = max(row["steps_per_s"] for row in found["tried"])
    rows = [
        [
            r["setting"],
            f"{r['steps_per_s']:,.0f}",
            f"{r['steps_per_s'] / top:.2f}",
            str(r["slices"]),
        ]
        for r in found["tried"]
    ]
    print_table(
        f"{found['game']}: what was tried, the best first",
        ["setting", "steps/s", "of the highest", "slices"],
        rows,
    )
    for row in found["learning"]["tried"]:
        results.print(
            f"{row['setting']}: × {row['throughput_ratio']:.2f}, {row['verdict']} ({row['reason']}), "
            f"{'kept' if row['kept'] else 'not kept'}",
            soft_wrap=True,
        )
    results.print(f"wrote {found['path']}; use it with --preset {found['preset']}", soft_wrap=True)


def _learning(config: Config, seconds: float) -> dict[str, Any]:
    """Try a larger minibatch and fewer epochs, one after the other; what pays is kept."""
    from maple.bench.compare import Plan, compare, two_sides
    from maple.bench.gate import Limits

    spec = make_game(config.name, config.game).spec
    recipe = config.recipe
    wanted = {f"{config.algo}.minibatch": 2 * recipe.minibatch}
    if isinstance(recipe, DqnConfig):
        wanted["dqn.updates_per_step"] = max(1, recipe.updates_per_step // 2)
    elif recipe.epochs > 1:
        wanted[f"{config.algo}.epochs"] = recipe.epochs - 1
    limits = Limits(margin=spec.metric.margin, seeds=3)
    plan = Plan(limits, max(0.5, seconds / (6 * len(wanted))), 5, 1500, 300, (config.probe_against,), config.seed)
    kept: dict[str, int] = {}
    tried = []
    with two_sides() as sides, notes.status("trying minibatch and epochs") as status:
        for key, value in wanted.items():
            section, field = key.split(".")
            candidate = config.model_copy(update={section: config.recipe.model_copy(update={field: value})})
            found = compare(sides, config, candidate, plan, status.update).as_json()
            tried.append({"setting": f"{key}={value}", **found, "kept": _pays(found, limits.margin)})
            if tried[-1]["kept"]:
                kept[key], config = value, candidate
    return {"kept": kept, "tried": tried}


def _pays(found: dict[str, Any], margin: float) -> bool:
    """Whether a setting is kept: not rejected, surely faster, and no weaker than the margin as far as was seen."""
    faster = found["throughput_ratio_ci95"][0] > 1.0
    return bool(found["verdict"] != "reject" and faster and found["strength_diff"] >= -margin)
