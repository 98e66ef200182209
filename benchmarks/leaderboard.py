"""Which rule teaches the lab's model more, at equal rollouts? Screen, settings, causes, confirmation, all methods.

    python benchmarks/leaderboard.py [--stage NAME ...] [--jobs 2] [--runs runs/leaderboard] [--summary]

Stages: screen, weights, settings, choose, confirm, causes, shapes, curves, finalists, methods, method_finalists,
method_families, sequential, tokens. What `--runs` holds is not run again, so the command goes on where it stopped;
`--summary` runs nothing and sums up what is there. Chosen on two tasks and seeds 0 to 9; confirmed once on a third task and
seeds 10 to 24. The published methods are a comparison of their own: screened on seeds 0 to 4, the best taken to 30 seeds,
seeds 10 to 29 of the third task among them, where the best of other families follow if ten seeds put them above uniform.
Results: benchmarks/results/leaderboard.json, one line a run in leaderboard_runs.jsonl, figures beside them. The `seconds`
of the runs there sum to 4.8 hours (10 s each, two side by side); warm starts come on top.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import leaderboard_causes as causes
import leaderboard_methods as published
from leaderboard_files import calls, line_of, rounded, unique, write

from rollwise.lab import Experiment, Training, Warmup, parse_arm, run_experiment, summarise
from rollwise.lab.published import loss_of
from rollwise.lab.runs import result_path
from rollwise.lab.summary import ALL, baseline_of
from rollwise.utilities import UTILITIES

TASKS, THIRD = ("chains", "division"), "rewrite"
SCREEN, CHOICE, UNSEEN = tuple(range(5)), tuple(range(10)), tuple(range(10, 25))
FULL, METHODS_UNSEEN = tuple(range(30)), tuple(range(10, 30))
SIZE = Training(Warmup(), steps=100, prompts=32, rollouts=8, evaluate_every=20)
"""25,600 rollouts a run: uniform's curve still rises at the end."""

LOSSES = ("grpo", "dr_grpo", "dapo")
DEFAULT = "min_variance"


@dataclass(frozen=True)
class Stage:
    """Arms that run on all tasks and seeds at one size of step; `shape` is the folder."""

    arms: tuple[str, ...]
    tasks: tuple[str, ...] = TASKS
    seeds: tuple[int, ...] = SCREEN
    shape: str = "32x8"


SHAPES: dict[str, Training] = {
    "32x8": SIZE,
    "16x8": replace(SIZE, prompts=16, steps=200, evaluate_every=40),
    "128x2": replace(SIZE, prompts=128, rollouts=2),
    "32x4": replace(SIZE, rollouts=4, steps=200, evaluate_every=40),
    "skewed": replace(SIZE, warmup=Warmup(pool="skewed")),
    "updates": replace(SIZE, rollouts=4, until="steps"),
    "tokens": replace(SIZE, until="tokens", tokens=1600),
    **{f"32x{group}": published.with_groups(SIZE, group) for group in published.GROUPS},
}
"""All spend 25,600 rollouts, but `updates`: as many updates as 32x8 with half the rollouts; and `tokens`: 160,000 tokens,
which on chains are some 26,000 rollouts of uniform."""


def with_loss(arm: str, loss: str) -> str:
    return arm if loss == "grpo" else f"{arm}@loss={loss}"


SCREENED = tuple(with_loss(rule, loss) for loss in LOSSES for rule in ("uniform", *UTILITIES))
WEIGHTS = (
    "uniform@objective=pass@2@weigh_by=carried",
    "uniform@loss=dr_grpo@objective=pass@2@weigh_by=carried",
    "uniform@loss=dr_grpo@objective=pass@4@weigh_by=carried",
    "uniform@loss=dr_grpo@objective=log@weigh_by=carried",
    "uniform@loss=dr_grpo@advantage=predictive@prior=carried",
    "neyman@loss=dr_grpo@prior=carried",
    "neyman@loss=dr_grpo@prior=carried@objective=pass@2",
)
SETTINGS = (
    "min_variance@weighting=per_prompt",
    "min_squared_advantage@weighting=per_prompt",
    "sum_variance@prior=carried@weighting=per_prompt",
    "min_variance@prior=carried",
    "min_squared_advantage@prior=carried",
    "sum_variance@prior=empirical",
    "min_variance@waves=2",
    "min_variance@waves=8",
    "sum_variance@prior=oracle@waves=1",
    "neyman@prior=carried",
    "sum_variance@prior=carried@waves=1",
    "neyman@prior=carried@waves=1",
)
SHAPED = ("uniform", "min_variance@n_min=1", "sum_variance@prior=carried@waves=1@n_min=1")
LATER = (
    *("choose", "confirm", "causes", "shapes", "curves", "finalists"),
    *("methods", "method_finalists", "method_families", "sequential", "tokens"),
)
"""Stages after `STAGES`."""
BY_TOKENS = (
    "uniform",
    "min_variance",
    "min_variance@budget=tokens",
    "sum_variance@prior=carried",
    "sum_variance@prior=carried@budget=tokens",
)
"""Uniform, and two rules that count rollouts or tokens."""
SEQUENTIAL = (
    "uniform",
    "min_variance@n_min=0",
    "min_variance@sequential=true@n_min=0",
    "min_variance@sequential=true@n_min=0@block_prompts=4",
)
"""Four waves, one rollout at a time over the whole step, and as published: by exact tables of four prompts each. A run
takes 12, 18, 65 and 18 s of processor."""


def with_baselines(arms: tuple[str, ...]) -> tuple[str, ...]:
    """The arms and the uniform arm of each one's loss."""
    rivals = [with_loss("uniform", loss) for loss in LOSSES]
    return tuple(dict.fromkeys([*(baseline_of(arm, rivals) for arm in arms), *arms]))


STAGES: dict[str, Stage] = {
    "screen": Stage(SCREENED),
    "weights": Stage(with_baselines(WEIGHTS)),
    "settings": Stage(with_baselines(SETTINGS)),
}
CHOSEN_ON = {"settings": SCREEN[:3]}
"""Seeds that a choice was made on where the stage has run more since: a choice once made stays."""
PUBLISHED, ALIKE = published.unlike(SCREENED)
COMPARED = 6
"""Arms of the screen that are taken to ten seeds."""
FINALISTS = 3
"""Of those, the arms that are confirmed, beside the default."""


Play = Callable[[str, Stage], list[dict[str, Any]]]
"""Makes the runs of a stage of that name if it is wanted; all results there are."""


def run_stage(stage: Stage, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Results of all runs of the stage, those made before included; with `--summary` only these."""
    folder = options.runs / stage.shape
    arms = tuple(map(parse_arm, stage.arms))
    if options.summary:
        paths = [result_path(folder, task, arm, seed) for task in stage.tasks for arm in arms for seed in stage.seeds]
        return [json.loads(path.read_text()) for path in paths if path.exists()]
    experiment = Experiment(arms, stage.tasks, stage.seeds, SHAPES[stage.shape])
    return run_experiment(experiment, folder, jobs=options.jobs, report=say, say=lambda line: print(line, flush=True))


def say(result: dict[str, Any], done: int, runs: int) -> None:
    curve = result["curve"]
    print(
        f"  {time.strftime('%H:%M:%S')} {done}/{runs} {result['task']} {result['seed']} {result['arm']} "
        f"{curve[0]['sampled']:.3f} -> {curve[-1]['sampled']:.3f} {result['seconds']:.0f} s",
        flush=True,
    )


def best(
    results: list[dict[str, Any]], count: int | None, seeds: tuple[int, ...], above: float | None = None
) -> tuple[str, ...]:
    """The arms with the largest mean difference to uniform of their loss in final accuracy, over tasks and `seeds`.

    With `above` only those whose whole interval is. An arm that knows the true rates is not a candidate: no trainer has
    them.
    """
    kept = [result for result in results if result["seed"] in seeds]
    rows = [row for row in summarise(kept) if row["task"] == ALL and "oracle" not in row["arm"]]
    if above is not None:
        rows = [row for row in rows if (row["final_difference"]["interval"] or [above])[0] > above]
    rows.sort(key=lambda row: -row["final_difference"]["mean"])
    return tuple(row["arm"] for row in rows[:count])


def rows_of(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The summary with numbers of five figures."""
    return rounded(summarise(results)) if results else []


def main() -> None:
    names = (*STAGES, *LATER)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", action="append", choices=names)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path("runs/leaderboard"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/leaderboard.json"))
    parser.add_argument("--summary", action="store_true", help="run nothing; sum up what is there")
    options = parser.parse_args()
    wanted = options.stage or names
    report: dict[str, Any] = {
        "made": calls(options),
        "seeds": {"screen": SCREEN, "choice": CHOICE, "confirmation": UNSEEN},
        "size": str(SIZE),
        "stages": {},
    }
    kept: dict[tuple[str, str, str, int], dict[str, Any]] = {}

    def play(name: str, stage: Stage) -> list[dict[str, Any]]:
        if name.split()[0] not in wanted and not options.summary:
            return run_stage(stage, argparse.Namespace(**vars(options) | {"summary": True}))
        print(name, time.strftime("%H:%M:%S"), flush=True)
        found = run_stage(stage, options)
        for result in found:
            kept[stage.shape, result["task"], result["arm"], result["seed"]] = line_of(stage.shape, result)
        report["stages"][name] = rows_of(found)
        write(options.out, report, list(kept.values()))
        return found

    whole = [
        result
        for name, stage in STAGES.items()
        for result in play(name, stage)
        if result["seed"] in CHOSEN_ON.get(name, stage.seeds)
    ]
    compared = best(whole, COMPARED, SCREEN)
    whole += play("choose", Stage(with_baselines(compared), seeds=CHOICE))
    tens = [result for result in unique(whole) if result["arm"] in with_baselines(compared)]
    finalists = tuple(dict.fromkeys([*best(tens, FINALISTS, CHOICE), DEFAULT]))
    report["chosen"] = {
        "settings_tried": len({result["arm"] for result in whole}),
        "taken_to_ten_seeds": compared,
        "finalists": finalists,
    }
    last = with_baselines(finalists)
    play("confirm", Stage(last, (THIRD,), UNSEEN))
    if "causes" in wanted or options.summary:
        report["causes"] = rounded(causes.separate(SIZE, TASKS, SCREEN[:3], options))
    for shape in ("skewed", "32x4", "128x2", "16x8"):
        play(f"shapes {shape}", Stage(SHAPED, shape=shape))
    play("shapes updates", Stage(("uniform",), shape="updates"))
    if "curves" in wanted and not options.summary:
        report["weight_curves"] = rounded(causes.weight_curves(SIZE, TASKS))
    thirty = play("finalists", Stage(last, seeds=FULL))
    report["stages"]["finalists not chosen on"] = rows_of([row for row in thirty if row["seed"] not in CHOICE])
    report["methods"] = rounded(play_methods(play, wanted if not options.summary else ()))
    play("sequential", Stage(SEQUENTIAL, seeds=SCREEN[:3]))
    play("tokens", Stage(BY_TOKENS, shape="tokens"))
    write(options.out, report, list(kept.values()))
    import leaderboard_figures  # last, since matplotlib takes a while to load

    leaderboard_figures.draw_all(json.loads(options.out.read_text()), unique(whole), options.out.parent)


def play_methods(play: Play, wanted: Sequence[str]) -> dict[str, Any]:
    """All published methods on the screen's seeds, uniform beside them at equal updates, and the best on more seeds.

    Raises:
        SystemExit: a stage of the best is wanted before every method was run.
    """
    stage = Stage(with_baselines(PUBLISHED))
    found = play("methods", stage)
    rivals: dict[int, list[dict[str, Any]]] = {}
    for group in sorted(set(published.matched_groups(found, SIZE).values())):
        arms = [arm for arm, own in published.matched_groups(found, SIZE).items() if own == group]
        uniform = tuple(dict.fromkeys(with_loss("uniform", loss_of(arm)) for arm in arms))
        rivals[group] = play(f"methods 32x{group}", Stage(uniform, shape=f"32x{group}"))
    missing = len(stage.arms) * len(stage.tasks) * len(stage.seeds) - len(found)
    if missing and {"method_finalists", "method_families"} & set(wanted):
        sys.exit(f"method_finalists: {missing} runs of stage methods are missing; run --stage methods first")
    report: dict[str, Any] = {"run_like": ALIKE, "at_equal_updates": published.beside(found, rivals, SIZE)}
    if missing:
        return report | {"missing_runs": missing}
    ranked = best(found, None, SCREEN)
    top = ranked[:FINALISTS]
    rest = published.by_family(ranked, top, ALIKE)
    play("method_finalists", Stage(with_baselines(top), seeds=FULL))
    play("method_finalists unseen", Stage(with_baselines(top), (THIRD,), METHODS_UNSEEN))
    tens = play("method_families", Stage(with_baselines(rest), seeds=CHOICE))
    ahead = tuple(arm for arm in best(tens, None, CHOICE, above=0.0) if arm in rest)
    play("method_families unseen", Stage(with_baselines(ahead), (THIRD,), METHODS_UNSEEN))
    return report | {"finalists": top, "best_of_other_families": rest, "of_these_ahead": ahead}


if __name__ == "__main__":
    main()
