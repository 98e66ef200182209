"""reasoning-gym data sets: drawn by seed, options passed on, judged by their own scorers."""

from __future__ import annotations

import json

import pytest

from rollwise.tasks.datasets import DataSpec, load_rows
from rollwise.tasks.gym import judge_gym
from rollwise.types import Outcome, RollwiseError

pytest.importorskip("reasoning_gym", reason="needs rollwise[gym]")


def test_rows_are_drawn_by_seed_and_splits_apart() -> None:
    def prompts(**given: object) -> list[str]:
        return load_rows(DataSpec(source="reasoning_gym/chain_sum", limit=20, **given))["prompt"][:]  # type: ignore[arg-type]

    assert prompts() == prompts(seed=0) != prompts(seed=1)
    assert not set(prompts()) & set(prompts(split="test"))


def test_options_reach_the_data_set_and_difficulty_is_kept() -> None:
    spec = DataSpec(
        source="reasoning_gym/chain_sum",
        limit=5,
        options={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1},
    )
    rows = load_rows(spec)
    assert all(json.loads(row["difficulty"])["num_terms"] for row in rows)
    assert all(abs(int(row["answer"])) <= 18 for row in rows)


@pytest.mark.parametrize(
    "name", ["chain_sum", "countdown", "knights_knaves", "propositional_logic", "prime_factorization"]
)
def test_the_scorer_judges_tagged_boxed_and_bare_answers(name: str) -> None:
    row = load_rows(DataSpec(source=f"reasoning_gym/{name}", limit=1))[0]
    if row["answer"] is None:
        assert judge_gym("<answer>p</answer>", row).outcome is not Outcome.UNKNOWN
        return
    for text in (
        f"so <answer> {row['answer']} </answer>.",
        f"<answer>0</answer> no, <answer>{row['answer']}</answer>",
    ):
        assert judge_gym(text, row).outcome is Outcome.SUCCESS
    for text in ("<answer>what?</answer>", "", "<answer></answer>"):
        assert judge_gym(text, row).outcome is Outcome.FAILURE


def test_partial_credit_is_a_failure_with_its_score() -> None:
    row = load_rows(DataSpec(source="reasoning_gym/chain_sum", limit=1))[0]
    verdict = judge_gym(f"<answer>about {row['answer']}, I think</answer>", row)
    assert verdict.outcome is Outcome.FAILURE
    assert verdict.reason.startswith("scored 0.")


def test_a_row_of_no_data_set_is_unknown() -> None:
    assert judge_gym("1", {"reasoning_gym": None}).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"source": "reasoning_gym/chainsum"}, "did you mean 'chain_sum'?"),
        (
            {"source": "reasoning_gym/chain_sum", "options": {"terms": 1}},
            "data.options: reasoning_gym/chain_sum refuses",
        ),
        (
            {"source": "reasoning_gym/chain_sum", "split": "dev"},
            "data.split: reasoning_gym/chain_sum has no split 'dev'",
        ),
    ],
)
def test_what_does_not_exist_is_named(spec: dict[str, object], named: str) -> None:
    with pytest.raises(RollwiseError) as error:
        load_rows(DataSpec(**spec))  # type: ignore[arg-type]
    assert named in str(error.value)


def test_options_belong_to_reasoning_gym_alone() -> None:
    with pytest.raises(ValueError, match="options: only sources reasoning_gym/"):
        DataSpec(source="gsm8k", options={"a": 1})
