"""Chains: right answers, distinct and disjoint splits, even classes, the same data for the same seed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.tasks.chains import (
    FACTORS,
    LENGTHS,
    LONGEST,
    OPERATORS,
    build_chains,
    draw_chain,
    format_prompt,
    solve_chain,
    split_of,
)
from rollwise.types import RollwiseError


@pytest.mark.parametrize(
    ("chain", "values"), [("7+5*3", "26"), ("0-1-9", "90"), ("9*9*9", "19"), ("3-8+5*4-7", "5003"), ("8+7", "5")]
)
def test_running_values_are_left_to_right_without_precedence(chain: str, values: str) -> None:
    assert solve_chain(chain) == values


@given(family=st.sampled_from(sorted(OPERATORS)), length=st.integers(2, LONGEST), seed=st.integers(0, 10**6))
def test_drawn_chains_are_of_the_class_asked_for(family: str, length: int, seed: int) -> None:
    chain = draw_chain(family, length, np.random.default_rng(seed))
    operators = chain[1::2]
    assert len(operators) == length
    assert set(operators) <= set(OPERATORS[family])
    assert family != "mixed" or len(set(operators)) > 1
    assert all(int(digit) in FACTORS for operator, digit in zip(operators, chain[2::2]) if operator == "*")
    assert family != "times" or "0" not in solve_chain(chain)
    expression = chain[0]
    for operator, digit in zip(operators, chain[2::2]):
        expression = f"({expression}{operator}{digit})"
    assert solve_chain(chain)[-1] == str(eval(expression) % 10)


@given(length=st.integers(2, LONGEST), seed=st.integers(0, 1000))
def test_prompts_have_the_same_number_of_operands_and_fillers(length: int, seed: int) -> None:
    prompt = format_prompt(draw_chain("mixed", length, np.random.default_rng(seed)))
    assert prompt.endswith("=")
    assert prompt.count(" ") == LONGEST - length


def test_columns_are_those_a_trainer_and_the_rewards_need() -> None:
    rows = build_chains("train", 32, seed=3)
    assert set(rows.column_names) == {"prompt", "answer", "difficulty", "id"}
    for row in rows:
        assert row["prompt"] == format_prompt(row["id"])
        assert row["answer"] == solve_chain(row["id"])


def test_classes_are_even_and_chains_distinct() -> None:
    rows = build_chains("train", 500, seed=0)
    counts = Counter(rows["difficulty"])
    assert set(counts) == {f"{family}-{length}" for family in OPERATORS for length in LENGTHS}
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len(set(rows["id"])) == 500


def test_train_and_test_never_share_a_chain_whatever_the_seed() -> None:
    train, test = build_chains("train", 2048, seed=0), build_chains("test", 512, seed=7)
    assert not set(train["id"]) & set(test["id"])
    assert {split_of(chain) for chain in test["id"]} == {"test"}


def test_the_seed_decides_everything() -> None:
    first = build_chains("train", 64, seed=5)
    assert first.to_list() == build_chains("train", 64, seed=5).to_list()
    assert first.to_list() != build_chains("train", 64, seed=6).to_list()


def test_known_rows_of_seed_zero_do_not_change() -> None:
    """A changed draw would make every published number of the embedded task stale."""
    assert list(build_chains("test", 4, seed=0, lengths=(2,))["id"]) == ["2*9*3", "0+5+6", "1*9+9", "4-7-0"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"split": "dev"}, "split is 'dev'"),
        ({"families": ("plus", "modulo")}, "families has 'modulo'"),
        ({"lengths": (1, 2)}, "lengths is"),
        ({"lengths": (9,)}, "lengths is"),
        ({"size": 0}, "size is 0"),
        ({"split": "test", "size": 5000}, "at most 624 test chains"),
    ],
)
def test_what_does_not_fit_is_named(arguments: dict, named: str) -> None:
    with pytest.raises(RollwiseError, match=named) as error:
        build_chains(**arguments)
    assert "\n" not in str(error.value)
