"""The checks of selectors and curators pass levers that keep the contract and name what others break."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rollwise.curators.base import Curated, keep_all
from rollwise.ledger_lines import read_rollout, rollout_line
from rollwise.testing import check_curator, check_selector
from rollwise.types import StepRecord, StoredRow


class Selector:
    """Walks through the pool in order; each test breaks one thing."""

    name = "walk"
    needs: frozenset[str] = frozenset()
    copies = False
    done = False

    def __init__(self) -> None:
        self.place = 0

    def select(self, pool: Sequence[str], beliefs: Any, n: int, rng: np.random.Generator) -> Any:
        places = (self.place + np.arange(n)) % len(pool)
        self.place += n
        return places

    def observe(self, record: StepRecord) -> None:
        pass

    def metrics(self) -> dict[str, float]:
        return {"place": float(self.place)}

    def state_dict(self) -> dict[str, Any]:
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.place = state["place"]


class Random(Selector):
    def select(self, pool: Sequence[str], beliefs: Any, n: int, rng: np.random.Generator) -> Any:
        return rng.choice(len(pool), n, replace=False)


class Outside(Selector):
    def select(self, pool: Sequence[str], beliefs: Any, n: int, rng: np.random.Generator) -> Any:
        return super().select(pool, beliefs, n, rng) + 35


class Greedy(Selector):
    def select(self, pool: Sequence[str], beliefs: Any, n: int, rng: np.random.Generator) -> Any:
        return super().select(pool, beliefs, n + 1, rng)


class Names(Selector):
    def select(self, pool: Sequence[str], beliefs: Any, n: int, rng: np.random.Generator) -> Any:
        return [pool[place] for place in super().select(pool, beliefs, n, rng)]


class Idle(Selector):
    def select(self, pool: Sequence[str], beliefs: Any, n: int, rng: np.random.Generator) -> Any:
        return np.zeros(0, dtype=np.int64)


class Forgetful(Selector):
    def state_dict(self) -> dict[str, Any]:
        return {"place": 0}


class Meddling(Selector):
    def select(self, pool: Sequence[str], beliefs: Any, n: int, rng: np.random.Generator) -> Any:
        beliefs.observe(pool[:1], [1], [0])
        return super().select(pool, beliefs, n, rng)


class Opaque(Selector):
    def state_dict(self) -> dict[str, Any]:
        return {"place": self.place, "rng": np.random.default_rng(0)}


class Wishful(Selector):
    needs = frozenset({"telepathy"})


def test_selectors_that_keep_the_contract_pass() -> None:
    check_selector(Selector())
    check_selector(Random())


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (Outside(), "outside the pool of 40"),
        (Greedy(), "gives 7 prompts where a step takes 6"),
        (Names(), "not whole numbers"),
        (Idle(), "selects nothing"),
        (Forgetful(), "with the same state"),
        (Meddling(), "changes the beliefs"),
        (Opaque(), "neither JSON-able nor an array"),
        (Wishful(), "'telepathy', which no trainer knows"),
    ],
)
def test_a_broken_promise_of_a_selector_is_named(selector: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_selector(selector)


class Curator:
    """Trains everything, and the first rollout of the step before once more in the place of the last one."""

    name = "again"
    needs: frozenset[str] = frozenset({"payload"})
    weighs_by: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.before: StoredRow | None = None

    @property
    def held(self) -> frozenset[str]:
        return frozenset() if self.before is None else frozenset({self.before.rollout.id})

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Any:
        stored = () if self.before is None else (self.before,)
        self.before = StoredRow(record.rollouts[0], record.step, float(record.advantages[0]))
        rows = record.trained[: len(record.trained) - len(stored)]
        return Curated(rows, np.ones(len(rows)), (*record.stored, *stored))

    def metrics(self) -> dict[str, float]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        if self.before is None:
            return {"before": None}
        line = rollout_line(self.before.step, self.before.rollout)
        return {"before": line, "advantage": self.before.advantage}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        line = state["before"]
        self.before = line and StoredRow(read_rollout(line), line["step"], state["advantage"])


class Twisted(Curator):
    """`twist` changes the decision."""

    def __init__(self, twist: Any) -> None:
        super().__init__()
        self.twist = twist

    def curate(self, record: StepRecord, rng: np.random.Generator) -> Any:
        return self.twist(super().curate(record, rng), record)


class Secretive(Curator):
    @property
    def held(self) -> frozenset[str]:
        return frozenset()


class Amnesiac(Curator):
    def state_dict(self) -> dict[str, Any]:
        return {"before": None}


class Scribbler(Curator):
    def curate(self, record: StepRecord, rng: np.random.Generator) -> Any:
        record.advantages[:] = 0
        return keep_all(record)


class Wordless(Curator):
    weighs_by = ["success_rate"]  # type: ignore[assignment]


def test_curators_that_keep_the_contract_pass() -> None:
    check_curator(Curator())


@pytest.mark.parametrize(
    ("curator", "words"),
    [
        (Twisted(lambda c, r: replace(c, rows=c.rows[::-1])), "not ascending"),
        (Twisted(lambda c, r: replace(c, rows=c.rows + len(r.rollouts))), "not among those that train"),
        (Twisted(lambda c, r: replace(c, weights=-c.weights)), "negative or not finite"),
        (Twisted(lambda c, r: replace(c, weights=c.weights[:-1])), "weights of shape"),
        (
            Twisted(lambda c, r: replace(c, stored=tuple(replace(s, advantage=None) for s in c.stored))),
            "needs regroup",
        ),
        (Twisted(lambda c, r: replace(c, stored=c.stored * 9)), "where .* were generated"),
        (Twisted(lambda c, r: replace(c, rows=c.rows[:0], weights=c.weights[:0], stored=())), "trains on nothing"),
        (Twisted(lambda c, r: c.rows), "not Curated"),
        (Secretive(), "did not ask to hold"),
        (Amnesiac(), "with the same state"),
        (Scribbler(), "changes the record"),
        (Wordless(), "weighs_by must be a frozenset"),
    ],
)
def test_a_broken_promise_of_a_curator_is_named(curator: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_curator(curator)


def test_a_curator_that_collects_steps_may_train_more_than_one_step_made() -> None:
    check_curator(Twisted(lambda c, r: replace(c, stored=c.stored * 9)), collects=True)
