"""Methods x seeds on one setting: every arm through `rollwise.step.Step`, over all cores, resumable.

One arm is one method on one seed. Its result is one JSON object, a line of `results.jsonl`, with the arm's whole setting
in it; an arm whose line is there is not run again.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.beliefs import prior_source
from rollwise.ledger import Ledger
from rollwise.simulate.drift import Drift, GradientDrift, RecordedDrift
from rollwise.simulate.environment import Environment, play
from rollwise.simulate.imperfections import Imperfections
from rollwise.simulate.measures import measure
from rollwise.simulate.methods import Method
from rollwise.simulate.pools import BetaPool, parse_pool
from rollwise.simulate.recorded import read_log
from rollwise.step import Step
from rollwise.types import RollwiseError
from rollwise.workers import end_with_parent

CURVE_POINTS = 100
_RULES, _CHOICES = 6, 7
"""Seed the rules' and the selectors' generators apart from the environment's."""


@dataclass(frozen=True)
class Setting:
    """What all methods of a comparison share.

    `pool` is a word of `simulate.pools`. `population` is the number of prompts, 0 for new ones in every step. `drift` is
    the logit rate of `GradientDrift` (0: static), `transfer` its share for all prompts; `replay` lets the rates move as the
    log named by `pool` did instead. `prior` is a setting of `rollwise.beliefs.prior_source`.
    """

    pool: str = "beta:1,1"
    prompts: int = 32
    budget: int = 256
    waves: int = 4
    steps: int = 100
    n_min: int = 2
    n_max: int | None = None
    prior: str = "1,1"
    discount: float = 0.85
    advantage: str = "grpo"
    weighting: str = "per_rollout"
    population: int = 0
    drift: float = 0.0
    transfer: float = 0.0
    replay: bool = False
    tokens: tuple[float, float] = (1.0, 1.0)
    imperfections: Imperfections = field(default_factory=Imperfections)

    def __post_init__(self) -> None:
        if self.steps < 1 or self.prompts < 1:
            raise RollwiseError(f"steps {self.steps}, prompts {self.prompts}: give 1 or more of both")
        if self.population < 0:
            raise RollwiseError(
                f"population: {self.population} prompts; give 1 or more, or 0 for new ones in every step"
            )
        GradientDrift(self.drift, self.transfer)  # refuses rates that are none
        if self.drift and not self.population:
            raise RollwiseError("population: rates that move need prompts that are met again; give one, such as 256")

    def environment(self, seed: int) -> Environment:
        """Prompts and coins of one seed; the same for every method."""
        if self.replay:
            log = read_log(self.pool.partition("#")[0])
            moving: Drift = RecordedDrift(log)
            return Environment(BetaPool.beta(1.0, 1.0), seed, len(log.ids), moving)
        drift = GradientDrift(self.drift, self.transfer) if self.drift else None
        return Environment(parse_pool(self.pool), seed, self.population, drift)

    def under(self, method: Method) -> Setting:
        """This setting with what the method wants otherwise."""
        return replace(self, **dict(method.step))


def run_arm(setting: Setting, method: Method, seed: int, ledger_path: str | Path | None = None) -> dict[str, Any]:
    """One method on one seed: means over steps, their standard deviations, and the account.

    Args:
        ledger_path: where the ledger is written; without one nothing is written and `ledger_paid` is None.

    Raises:
        RollwiseError: a setting that cannot be met, or an account that does not balance.
    """
    own = setting.under(method)
    environment, rule = own.environment(seed), method.build()
    priors = prior_source(own.prior, discount=own.discount)
    rng = np.random.default_rng([_RULES, seed])
    ledger = Ledger(ledger_path) if ledger_path is not None else None
    values: dict[str, list[float]] = {}
    curve: list[float] = []
    started, paid = time.perf_counter(), 0
    selector, curators = method.choose_prompts(own.steps, seed), method.choose_rows()
    if selector is not None and not own.population:
        raise RollwiseError("population: a selector needs prompts that are met again; give one, such as 256")
    index = -1
    while paid < own.steps * own.budget if selector is not None else index < own.steps - 1:
        index += 1
        if selector is None:
            ids, rates = environment.open(index, own.prompts)
        else:
            places = selector.select(
                environment.ids, priors, own.prompts, np.random.default_rng([_CHOICES, seed, index])
            )
            if not len(places) and selector.done:
                break
            ids, rates = environment.visit(places)
        if not ids:
            continue
        copies = selector is not None and selector.copies
        step = Step(
            ids,
            rule,
            own.budget * len(ids) // own.prompts,
            rng=rng,
            index=index,
            waves=own.waves,
            prior=priors.for_step(ids),
            n_min=min(own.n_min, own.budget // own.prompts),
            n_max=own.n_max,
            advantage=own.advantage,
            weighting=own.weighting,
            curators=curators,
            copies=copies,
            ledger=ledger,
        )
        played = play(step, rates, (seed, index), own.imperfections, own.tokens)
        priors.observe(played.record.prompt_ids, played.record.successes, played.record.failures)
        environment.learn(played)
        if selector is not None:
            selector.observe(played.record)
        paid += int(played.record.counts.sum())
        for name, value in measure(played).items():
            values.setdefault(name, []).append(value)
        curve.append(float(environment.rates.mean()) if len(environment.rates) else float("nan"))
    if ledger is not None:
        ledger.close()
    check_account(method.label, own, rule.saves or selector is not None, paid, None if ledger is None else ledger.paid)
    means = {name: float(np.mean(column)) for name, column in values.items()}
    if own.drift:
        means |= {"final_rate": curve[-1], "curve_rate": float(np.mean(curve))}
    return {
        "key": arm_key(setting, method, seed),
        "method": method.label,
        "seed": seed,
        "setting": json.loads(json.dumps(asdict(setting))),
        "steps": own.steps,
        "paid": paid,
        "ledger_paid": None if ledger is None else ledger.paid,
        "seconds": round(time.perf_counter() - started, 3),
        "means": means,
        "deviations": {name: float(np.std(column, ddof=min(1, len(column) - 1))) for name, column in values.items()},
        "curve": curve[:: max(1, -(-own.steps // CURVE_POINTS))] if own.drift else [],
    }


def check_account(label: str, own: Setting, saves: bool, paid: int, recorded: int | None) -> None:
    """Raise RollwiseError unless the ledger holds every rollout paid for, and a rule that does not save spent all."""
    if recorded is not None and recorded != paid:
        raise RollwiseError(f"method {label}: {paid} rollouts paid for but {recorded} in its ledger")
    if not saves and paid != own.steps * own.budget:
        raise RollwiseError(f"method {label}: spent {paid} rollouts of {own.steps * own.budget}")


def arm_key(setting: Setting, method: Method, seed: int) -> str:
    """What tells arms apart, in one line."""
    return json.dumps([asdict(setting), method.label, seed], sort_keys=True)


def run(
    settings: Setting | Sequence[Setting],
    methods: Sequence[Method],
    seeds: Iterable[int],
    *,
    output: str | Path | None = None,
    workers: int | None = None,
    ledgers: bool = True,
    progress: Callable[[int, int, dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Run all arms, in order of setting, method and seed.

    Args:
        output: folder of `results.jsonl`, where arms that are there already are taken over; None to keep nothing.
        workers: processes; None for one per core, 1 for none but this.
        ledgers: write and check a ledger per arm (deleted once it balances); costs about half as much again.
        progress: called with arms done, arms in all, and the result.

    Raises:
        RollwiseError: from an arm, or for a results file that is none.
    """
    chosen = [settings] if isinstance(settings, Setting) else list(settings)
    arms = [(setting, method, int(seed)) for setting in chosen for method in methods for seed in seeds]
    for setting in chosen:
        parse_pool(setting.pool)
    for method in methods:
        method.build()
    path = None if output is None else Path(output) / "results.jsonl"
    done = {} if path is None else read_results(path)
    found = {arm_key(*arm): done[arm_key(*arm)] for arm in arms if arm_key(*arm) in done}
    missing = [arm for arm in arms if arm_key(*arm) not in found]
    if path is not None:
        append(path)  # a folder that cannot be written is named before anything runs
    for row in _run_all(missing, workers or os.cpu_count() or 1, ledgers):
        found[row["key"]] = row
        if path is not None:
            append(path, row)
        if progress is not None:
            progress(len(found), len(arms), row)
    return [found[arm_key(*arm)] for arm in arms]


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """Finished arms by key; a line cut short by a kill is dropped from the file.

    Raises:
        RollwiseError: a line that is no result.
    """
    if not path.exists():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        rows = [json.loads(line) for line in whole.splitlines()]
        return {row["key"]: row for row in rows}
    except OSError as error:
        raise RollwiseError(f"output: {path} cannot be read ({error.strerror}); give another folder") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RollwiseError(f"output: {path} holds a line that is no result; give another folder") from None


def append(path: Path, *rows: dict[str, Any]) -> None:
    """Add a line for each row.

    Raises:
        RollwiseError: a file that cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    except OSError as error:
        raise RollwiseError(
            f"output: {path.parent} cannot be written ({error.strerror}); give another folder"
        ) from None


def _run_all(arms: Sequence[tuple[Setting, Method, int]], workers: int, ledgers: bool) -> Iterable[dict[str, Any]]:
    if workers == 1 or len(arms) < 2:
        yield from (_run_one(arm, ledgers) for arm in arms)
        return
    # a fresh interpreter each: forking a process that runs threads may hang
    pool = ProcessPoolExecutor(min(workers, len(arms)), mp_context=get_context("spawn"), initializer=_start_worker)
    try:
        for finished in as_completed([pool.submit(_run_one, arm, ledgers) for arm in arms]):
            yield finished.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    os.environ["NUMBA_NUM_THREADS"] = "1"
    end_with_parent()


def _run_one(arm: tuple[Setting, Method, int], ledgers: bool) -> dict[str, Any]:
    if not ledgers:
        return run_arm(*arm)
    with tempfile.TemporaryDirectory() as folder:
        return run_arm(*arm, Path(folder) / "ledger.jsonl")
