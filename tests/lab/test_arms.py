"""Arms in one line of text."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.allocators.adaroll import AdaRoll
from rollwise.lab.arms import Arm, parse_arm, parse_arms
from rollwise.lab.beliefs import oracle_beliefs
from rollwise.types import RollwiseError
from rollwise.utilities import get_utility


def test_a_line_becomes_a_rule_with_its_settings() -> None:
    arm = parse_arm(
        "adaroll:sum_variance@waves=8@prior=2/3@loss=dapo@objective=pass@4@sequential=true@lr=1e-3@n_max=16"
    )
    rule = arm.rule()
    assert isinstance(rule, AdaRoll) and rule.sequential and rule.utility == get_utility("sum_variance")
    assert (arm.waves, arm.prior, arm.loss, arm.objective, arm.lr) == (8, "2,3", "dapo", "pass@4", 1e-3)
    assert arm.n_max == 16 and arm.estimator == "grpo"
    assert arm.ascended().weight(np.array([0.0])) == 4.0


def test_a_utility_alone_is_adaroll_with_it() -> None:
    short, long = parse_arm("min_variance"), parse_arm("adaroll:min_variance")
    assert short.key == long.key and short.name != long.name


def test_arms_that_run_differently_have_different_keys() -> None:
    lines = ("uniform", "uniform@loss=dapo", "uniform@lr=3e-4", "min_variance", "min_variance@waves=2")
    assert len({parse_arm(line).key for line in lines}) == len(lines)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("uniform", "9698c9b78c"),
        ("min_variance@waves=8", "4ca0c5d967"),
        ("neyman@loss=dr_grpo@prior=carried@objective=pass@2", "7088e384c9"),
    ],
)
def test_keys_of_arms_that_were_run_stay(line: str, key: str) -> None:
    assert parse_arm(line).key == key


def test_vip_foretells_by_the_model_unless_it_is_told_otherwise() -> None:
    priors = {
        line: parse_arm(line).prior
        for line in ("vip", "vip@form=dr_grpo", "preset.vip", "vip_beta", "vip@prior=carried")
    }
    assert list(priors.values()) == ["gaussian_process"] * 3 + ["carried"] * 2


def test_a_curve_is_read_between_its_points() -> None:
    arm = Arm("uniform", curve=((0.0, 2.0), (1.0, 0.0)))
    assert arm.ascended().weight(np.array([0.0, 0.25, 1.0])).tolist() == [2.0, 1.5, 0.0]


def test_oracle_beliefs_have_their_mean_near_the_rate() -> None:
    beliefs = oracle_beliefs(np.array([0.0, 0.5, 1.0]), 62.0)
    assert (beliefs.sum(axis=1) == 64.0).all()
    assert beliefs[:, 0].tolist() == [1.0, 32.0, 63.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("uniformm", "did you mean 'uniform'"),
        ("uniform@wave=3", "methods: uniform has no 'wave'; did you mean 'waves'"),
        ("adaroll:min_varience", "did you mean 'min_variance'"),
        ("min_variance@sequental=true", "allocator: adaroll has no setting 'sequental'"),
        ("uniform@loss=ppo", "loss: no 'ppo'"),
        ("uniform@schedule=cosine", "schedule: no 'cosine'"),
        ("uniform@weigh_by=truth", "weigh_by: no 'truth'"),
        ("uniform@lr=fast", "methods: 'uniform@lr=fast' has a value of the wrong type"),
        ("uniform@lr=0", "give positive numbers"),
        ("uniform@lr=inf", "lr inf, strength 64.0: give positive numbers, an lr up to 1"),
        ("uniform@strength=inf", "a strength up to 1e+09"),
        ("uniform@updates=1.5", "updates: 1.5; give a whole number"),
        ("uniform@updates=nan", "updates: nan; give a whole number"),
        ("uniform@advantage=1", "advantage: no estimator '1'"),
        ("uniform@selector=mops", "selector: no 'mops'; did you mean 'mopps'"),
        ("uniform@curator=replay@curator.sharing=1", "curator: replay has no setting 'sharing'; did you mean 'share'"),
        ("optpo@labels=vote", "labels: no 'vote'"),
        ("uniform@prior=carry", "prior: no 'carry'"),
        ("", "methods: ''; give at least one"),
        ("uniform,uniform", "none twice"),
    ],
)
def test_mistakes_are_one_line_that_names_the_setting(line: str, message: str) -> None:
    with pytest.raises(RollwiseError) as caught:
        parse_arms(line)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_selectors_and_curators_have_settings_of_their_own() -> None:
    arm = parse_arm("uniform@selector=mopps@curator=codapo@curator.offset=0.5")
    assert arm.selector == "mopps" and arm.lever_settings == {"curator": {"offset": 0.5}}
    assert [rule.name for rule in arm.choose_rows()] == ["codapo"]
    assert arm.settings == {} and arm.key != parse_arm("uniform@selector=mopps@curator=codapo").key


def test_what_an_arm_does_not_use_leaves_its_key_alone() -> None:
    # results are found again by it
    assert (parse_arm("uniform").key, parse_arm("min_variance").key) == ("9698c9b78c", "a4e3b9aa75")
