"""Every published method through the real trainer call: its mechanism acts, each of its levers matters, and two processes
train it within its budget, as one process does, and resume it bit for bit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.allocators import get_allocator
from rollwise.presets import PRESETS
from rollwise.types import Outcome, StepRecord
from tests.integrations.trl.presets import BUDGET, SAVED, STEPS, fields, play
from tests.integrations.trl.support import distance, same

Run = dict[str, Any]


@pytest.fixture(scope="module")
def alone(model: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """`alone(preset, **changes)`: its run in this process, each made once."""
    made: dict[str, Run] = {}

    def run(preset: str, **changes: Any) -> Run:
        config = fields(preset, **changes)
        key = json.dumps(config, sort_keys=True)
        if key not in made:
            made[key] = play(tmp_path_factory.mktemp("alone"), model, config | {"per_device_train_batch_size": 16})
        return made[key]

    return run


# -- the mechanism acts ---------------------------------------------------------------------------------------------


def groups(run: Run) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rewards and advantages of every group of every round."""
    found = []
    for record in run["records"]:
        rewards = np.array([rollout.reward for rollout in record.rollouts])
        for slot in range(len(record.counts)):
            found.append((rewards[record.slots == slot], record.advantages[record.slots == slot]))
    return found


def mixed(run: Run) -> list[tuple[np.ndarray, np.ndarray]]:
    """Those of groups with successes and failures; there are some."""
    found = [(rewards, gains) for rewards, gains in groups(run) if len(set(rewards)) > 1]
    assert found
    return found


def follows(expected: Callable[[np.ndarray], np.ndarray], run: Run) -> bool:
    """Whether every mixed group's advantages are what the formula makes of its rewards."""
    return all(np.allclose(gains, expected(rewards), atol=1e-9) for rewards, gains in mixed(run))


def tells_equals_apart(run: Run) -> bool:
    """Whether rollouts of one group and one reward have different advantages."""
    return any(len(set(gains[rewards == 0].round(6))) > 1 for rewards, gains in mixed(run))


def moves_dead_groups(run: Run) -> bool:
    return any(gains.any() for rewards, gains in groups(run) if len(set(rewards)) == 1)


def uneven(run: Run) -> bool:
    return any(len(set(record.counts.tolist())) > 1 for record in run["records"])


def saves(run: Run) -> bool:
    return run["spent"] < BUDGET * len(run["records"])


def first_successes(record: StepRecord) -> np.ndarray:
    """(B,) successes of each prompt in the first wave."""
    won = [rollout.outcome is Outcome.SUCCESS and rollout.wave == 0 for rollout in record.rollouts]
    return np.bincount(record.slots, won, len(record.counts))


def helps(solved: bool, run: Run) -> bool:
    """Whether later waves went, rollout for rollout, to prompts that the first one solved more often, or less."""
    pairs = []
    for record in run["records"]:
        won, size = first_successes(record), np.bincount(record.slots, [not row.wave for row in record.rollouts])
        pairs += [
            (record.counts[i] - record.counts[j] - (size[i] - size[j])) * (won[i] - won[j])
            for i in range(len(won))
            for j in range(i)
        ]
    return sum(pairs) > 0 if solved else sum(pairs) < 0


def follows_past(run: Run) -> bool:
    """Whether prompts of the first visit got equal numbers and those of a later one did not."""
    counts = [len(set(record.counts.tolist())) for record in run["records"]]
    return counts[0] == 1 and max(counts[2:]) > 1


def logged(name: str, run: Run) -> list[float]:
    return [entry[name] for entry in run["history"] if name in entry]


def fires(name: str, run: Run) -> bool:
    return any(value > 0 for value in logged(f"rollwise/{name}", run))


def weighed(run: Run) -> bool:
    """Whether the curator's factor differs between rows that train."""
    return all(len(set(r.factors["curator"].round(9))) > 1 for r in run["records"] if r.advantages.any())


def without_dead_rows(run: Run) -> bool:
    return all(r.successes[s] and r.failures[s] for r in run["records"] for s in r.slots[r.trained])


def repeats(run: Run) -> bool:
    names: list[set[Hashable]] = [set(record.prompt_ids) for record in run["records"]]
    return [len(found) for found in names] == [4, 1, 4, 1] and names[1] < names[0] and names[3] < names[2]


def deviation(rewards: np.ndarray) -> np.ndarray:
    return (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)


def left_out(rewards: np.ndarray) -> np.ndarray:
    return rewards - (rewards.sum() - rewards) / (len(rewards) - 1)


SEEN: dict[str, Callable[[Run], Any]] = {
    "grpo": partial(follows, deviation),
    "dr_grpo": partial(follows, lambda rewards: rewards - rewards.mean()),
    "gspo": lambda run: any(share > 0 for share in logged("clip_ratio/region_mean", run)),
    # on policy, the gradient of a sum over up to six tokens where GRPO has their mean
    "tic_grpo": lambda run: 2 < logged("grad_norm", run)[0] / logged("grad_norm", run["plain"])[0] < 6,
    "rloo": partial(follows, left_out),
    "mc_grpo": lambda run: all((gains[rewards == np.median(rewards)] == 0).all() for rewards, gains in mixed(run)),
    "krpo": tells_equals_apart,
    "ms_grpo": tells_equals_apart,
    "adaroll": uneven,
    "neyman": uneven,
    "vip": follows_past,
    "vip_dr_grpo": follows_past,
    "vip_beta": follows_past,
    "vip_beta_dr_grpo": follows_past,
    "hora": partial(helps, False),
    "hora_mass_aware": partial(helps, False),
    "knapsack": follows_past,
    "gvm": partial(helps, True),
    "gvm_equal": partial(helps, True),
    "dars": partial(helps, False),
    "dars_hw": partial(helps, False),
    "aero": lambda run: saves(run) and fires("subsampled_out", run) and moves_dead_groups(run),
    "ar3po": lambda run: saves(run) and fires("reused_rows", run),
    "reinforce_ada": lambda run: saves(run) and fires("subsampled_out", run),
    "reinforce_ada_positive": lambda run: saves(run) and helps(False, run) and fires("subsampled_out", run),
    "optpo": lambda run: saves(run) and all(rewards.max() == 1 for rewards, _ in groups(run)),
    "cero": lambda run: logged("rollwise/cero_spent", run) == [0.25, 0.5, 0.75, 1.0],
    "mopps": lambda run: fires("mopps_distance", run) and max(logged("rollwise/mopps_known", run)) > 4,
    "greso": lambda run: fires("greso_skipped_share", run) and fires("idle", run) and without_dead_rows(run),
    "codapo": lambda run: repeats(run) and weighed(run),
    "dapo": lambda run: fires("idle", run) and without_dead_rows(run),
    "dapo_capped": lambda run: min(logged("rollwise/trained_share", run), default=1) < 1 and without_dead_rows(run),
    "replay": lambda run: fires("replayed_rows", run) and without_dead_rows(run),
    "pods": lambda run: set(logged("rollwise/trained_share", run)) == {3 / 8},
}
"""What a run of each method shows of its mechanism."""


def test_every_preset_says_what_is_seen_of_it() -> None:
    assert SEEN.keys() == PRESETS.keys()


@pytest.mark.parametrize("preset", PRESETS)
def test_its_mechanism_acts(alone: Callable[..., Run], preset: str) -> None:
    plain = alone("grpo")
    assert SEEN[preset](alone(preset) | {"plain": plain})
    if preset != "grpo":
        assert not SEEN[preset](plain | {"plain": plain}), "what is seen is not the method's"


# -- every lever matters --------------------------------------------------------------------------------------------

OFF: dict[str, tuple[Callable[[Any], bool], dict[str, Any], str]] = {
    "allocator": (lambda method: method.allocator != "uniform", {"allocator": "uniform"}, "counts"),
    "selector": (lambda method: method.selector, {"selector": None, "selector_settings": None}, "prompts"),
    "curators": (lambda method: method.curators, {"curators": [], "curator_settings": None}, "rows"),
    "advantage": (lambda method: method.advantage != "grpo", {"advantage": "grpo"}, "advantages"),
    # VIP refuses a prior that is alike for all prompts
    "prior": (lambda method: "prior" in method.step and method.allocator != "vip", {"prior": "1,1"}, "counts"),
    "prediction": (
        lambda method: method.step.get("prior") == "gaussian_process",
        {"prior": "carried"},
        "counts",
    ),
    "labels": (lambda method: "labels" in method.step, {"labels": "verifier"}, "outcomes"),
    "loss": (lambda method: method.name in ("grpo", "dr_grpo", "codapo"), {"loss_type": "dapo"}, "gradients"),
    "ratio": (
        lambda method: "importance_sampling_level" in method.trainer,
        {"importance_sampling_level": "token"},
        "gradients",
    ),
}
"""Lever -> whether a method uses it, what switches it off, and what of a run that must change."""

LOOK: dict[str, Callable[[StepRecord], Any]] = {
    "counts": lambda record: record.counts.tolist(),
    "prompts": lambda record: record.prompt_ids,
    "rows": lambda record: (
        record.trained.tolist(),
        [row.rollout.id for row in record.stored],
        record.factors["curator"].tolist(),
    ),
    "advantages": lambda record: record.advantages.tolist(),
    "outcomes": lambda record: [rollout.outcome for rollout in record.rollouts],
}

USED = [(name, lever) for name, method in PRESETS.items() for lever, (used, _, _) in OFF.items() if used(method)]


def test_every_preset_has_a_lever_that_is_switched_off() -> None:
    assert {name for name, _ in USED} == PRESETS.keys()


@pytest.mark.parametrize(("preset", "lever"), USED, ids=["-".join(pair) for pair in USED])
def test_switching_a_lever_off_changes_what_trains(alone: Callable[..., Run], preset: str, lever: str) -> None:
    _, changes, what = OFF[lever]
    on, off = alone(preset), alone(preset, **changes)
    if what == "gradients":
        assert max(distance(*pair) for pair in zip(on["gradients"], off["gradients"], strict=True)) > 1e-4
    else:
        look = LOOK[what]
        assert list(map(look, on["records"])) != list(map(look, off["records"]))


# -- two processes --------------------------------------------------------------------------------------------------


APART = {
    "adaroll": "its waves are of any size, which two processes round to even",
    "codapo": "the mean over tokens of its loss, bnpo, is over those of one process",
}
"""Why two processes do not train exactly what one does."""


@pytest.fixture(scope="module")
def pair(
    launch: Callable[..., list[dict[str, Run]]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, Run]]]:
    """Folder and results, by process, of one launch: every preset, and every preset again from its middle."""
    runs = []
    for preset in PRESETS:
        config = fields(preset) | {"kind": "preset", "per_device_train_batch_size": 8}
        saved = f"../{preset}/checkpoint-{SAVED}"
        runs += [
            config | {"name": preset, "save_strategy": "steps", "save_steps": SAVED},
            config | {"name": f"{preset} resumed", "resume": saved},
        ]
    folder = tmp_path_factory.mktemp("pair")
    return folder, launch(folder, 2, runs)


def ledger(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rollwise" / "ledger.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("preset", PRESETS)
def test_two_processes_stay_within_the_budget_and_record_every_rollout(pair: Any, preset: str) -> None:
    folder, results = pair
    lines = ledger(folder / preset)
    waves = [(line["step"], entry["id"]) for line in lines if line["type"] == "wave" for entry in line["rollouts"]]
    seen = [line["id"] for line in lines if line["type"] == "rollout"]
    paid = Counter(step for step, _ in waves)
    saving = get_allocator(PRESETS[preset].allocator).saves
    assert set(paid.values()) == {BUDGET} or (saving and max(paid.values()) <= BUDGET)
    assert sorted(seen) == sorted(key for _, key in waves) and len(set(seen)) == len(seen)
    assert same(*(result[preset]["parameters"] for result in results))
    for result in results:
        assert result[preset]["spent"] == len(seen)
        assert [int(record.counts.sum()) for record in result[preset]["records"]] == [paid[k] for k in sorted(paid)]


@pytest.mark.parametrize("preset", [name for name in PRESETS if name not in APART])
def test_two_processes_train_what_one_does(alone: Callable[..., Run], pair: Any, preset: str) -> None:
    one, first = alone(preset), pair[1][0][preset]
    assert [r.counts.tolist() for r in first["records"]] == [r.counts.tolist() for r in one["records"]]
    assert distance(one["parameters"], first["parameters"]) < 2e-5


@pytest.mark.parametrize("preset", PRESETS)
def test_two_processes_resume_from_the_middle_bit_for_bit(pair: Any, preset: str) -> None:
    folder, results = pair
    for result in results:
        whole, resumed = result[preset], result[f"{preset} resumed"]
        assert len(resumed["gradients"]) == STEPS - SAVED
        assert same(whole["parameters"], resumed["parameters"])
        assert whole["spent"] == resumed["spent"]
    rest = [line for line in ledger(folder / f"{preset} resumed") if line["type"] == "rollout"]
    assert [line["id"] for line in rest] == [
        line["id"] for line in ledger(folder / preset) if line["type"] == "rollout"
    ][-len(rest) :]
