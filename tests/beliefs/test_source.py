"""The setting `prior`: read strictly, learning from what a step returned, resumed as it was."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rollwise.allocators import Uniform
from rollwise.beliefs import CarriedPrior, EmpiricalPrior, FixedPrior, PriorSource, fit_prior, prior_source
from rollwise.beliefs.gaussian_process import GaussianProcessPrior
from rollwise.step import Step
from rollwise.types import RollwiseError

IDS = [str(k) for k in range(32)]


def outcomes(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of 32 prompts x 8 rollouts whose rates are spread like Beta(.4,.8), the same at every step."""
    s = np.random.default_rng(step).binomial(8, np.random.default_rng(99).beta(0.4, 0.8, size=32))
    return s, 8 - s


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("1,1", FixedPrior),
        (None, FixedPrior),
        ((0.5, 2), FixedPrior),
        ("empirical", EmpiricalPrior),
        ("carried", CarriedPrior),
        ("gaussian_process", GaussianProcessPrior),
    ],
)
def test_the_setting_is_a_pair_or_a_word(given: Any, kind: type) -> None:
    source = prior_source(given)
    assert isinstance(source, kind) and isinstance(source, PriorSource)
    assert prior_source(source) is source


@pytest.mark.parametrize(
    ("given", "line"),
    [("carrid", "did you mean 'carried'"), ("0,1", "such as 1,1"), (3, "give 1,1, empirical or carried")],
)
def test_anything_else_is_refused_with_a_valid_value(given: Any, line: str) -> None:
    with pytest.raises(RollwiseError, match=line):
        prior_source(given)


def test_a_gaussian_process_needs_embeddings_and_says_what_does_without() -> None:
    source = prior_source("gaussian_process", embeddings={"a": [0.0], "b": [1.0]}, settings={"own": 0.5})
    assert isinstance(source, GaussianProcessPrior) and source.own == 0.5
    assert source.for_step(["a", "b"]).tolist() == [[1, 1]] * 2
    with pytest.raises(RollwiseError, match=r"there are none here; use carried \(method vip_beta\)"):
        prior_source("gaussian_process").for_step(["a"])


@pytest.mark.parametrize(
    ("given", "settings", "line"),
    [
        (
            "gaussian_process",
            {"owns": 0.5},
            "prior_settings.owns: gaussian_process has no such setting; did you mean 'own'",
        ),
        ("gaussian_process", {"x": 0.5}, "prior_settings.x: .* valid: embedding, eps, limit, noise, own"),
        ("gaussian_process", {"own": "much"}, "prior_settings.own: 'much' does not fit; give a number, such as 0.1"),
        ("gaussian_process", {"eps": True}, "prior_settings.eps: True does not fit"),
        ("gaussian_process", {"limit": 2.5}, "prior_settings.limit: 2.5 does not fit; give a whole number"),
        ("gaussian_process", {"embedding": 3}, "prior_settings.embedding: 3 is no address; give module:function"),
        ("gaussian_process", {"embedding": "mine"}, "prior_settings.embedding: 'mine' is no address"),
        ("gaussian_process", {"own": 2}, "own from 0 to 1"),
        ("carried", {"own": 0.5}, "prior_settings: are for prior gaussian_process, and this run's is carried"),
    ],
)
def test_settings_are_those_of_the_gaussian_process(given: str, settings: dict[str, Any], line: str) -> None:
    with pytest.raises(RollwiseError, match=line):
        prior_source(given, settings=settings)


def test_a_fixed_prior_learns_nothing() -> None:
    source = prior_source("0.5,2")
    source.observe(IDS, *outcomes(0))
    assert source.for_step(IDS).tolist() == [[0.5, 2.0]] * 32


def test_the_empirical_prior_is_the_fit_of_its_window_rounded() -> None:
    source = EmpiricalPrior(window=64)
    assert source.for_step(IDS[:2]).tolist() == [[1, 1]] * 2
    for step in range(4):
        source.observe(IDS, *outcomes(step))
    s = np.concatenate([outcomes(2)[0], outcomes(3)[0]])
    expected = [float(f"{x:.2g}") for x in fit_prior(s, np.full(64, 8))]
    assert source.for_step(IDS).tolist() == [expected] * 32
    assert expected[0] < 0.8


def test_a_handful_of_groups_leaves_the_empirical_prior_flat() -> None:
    source = EmpiricalPrior()
    source.observe(["a"] * 15, [0] * 15, [8] * 15)
    source.observe(["b"] * 40, [0] * 40, [0] * 40)  # nothing known: no groups
    assert source.prior == (1.0, 1.0)
    source.observe(["c"], [0], [8])
    assert source.prior[0] < 1 < source.prior[1]


def test_carried_beliefs_sit_on_the_population_and_remember_the_prompt() -> None:
    source = prior_source("carried", discount=0.5)
    source.observe(IDS, *outcomes(0))
    s, f = outcomes(0)
    assert isinstance(source, CarriedPrior) and source.population is not None
    base = np.array(source.population.prior)
    assert source.for_step(IDS) == pytest.approx(base + np.stack([s, f], axis=1))
    assert source.for_step(["never"]) == pytest.approx(base[None])
    pinned = prior_source("carried", base=(2, 3))
    pinned.observe(IDS, s, f)
    assert pinned.for_step(["never"]).tolist() == [[2, 3]]


@pytest.mark.parametrize("name", ["1,1", "empirical", "carried"])
def test_a_resumed_source_goes_on_as_the_first_would_have(name: str) -> None:
    whole, first, second = (prior_source(name) for _ in range(3))
    for step in range(6):
        whole.observe(IDS, *outcomes(step))
        (first if step < 3 else second).observe(IDS, *outcomes(step))
        if step == 2:
            text = json.dumps(first.state_dict(), default=lambda array: array.tolist())
            second.load_state_dict(json.loads(text))
    assert (second.for_step([*IDS, "new"]) == whole.for_step([*IDS, "new"])).all()


def test_a_state_of_another_kind_is_refused() -> None:
    with pytest.raises(RollwiseError, match="of kind 'empirical', this run's prior is 'carried'"):
        CarriedPrior().load_state_dict(EmpiricalPrior().state_dict())


def test_the_beliefs_open_a_step_and_take_in_its_record() -> None:
    source = prior_source("carried", base=(1, 1), discount=1.0)
    rng = np.random.default_rng(0)
    for index in range(2):
        step = Step(["a", "b"], Uniform(), 8, rng=rng, index=index, waves=1, prior=source.for_step(["a", "b"]))
        while wave := step.next_wave():
            step.observe(*(rollout.result(rollout.prompt_id == "a") for rollout in wave.rollouts))
        record = step.close()
        source.observe(record.prompt_ids, record.successes, record.failures)
        assert {rollout.belief for rollout in record.rollouts} == {(1 + 4 * index, 1), (1, 1 + 4 * index)}
    assert source.for_step(["a", "b"]).tolist() == [[9, 1], [1, 9]]


@pytest.mark.parametrize("settings", [{"window": 0}, {"discount": 2.0}, {"limit": 0}])
def test_options_out_of_range_are_named(settings: dict[str, Any]) -> None:
    with pytest.raises(RollwiseError, match=f"^prior_{next(iter(settings))}: "):
        prior_source("carried", **settings)
