"""VIP's predictor: the posterior by textbook formula, prompts that read alike, state, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.allocators.vip import Vip
from rollwise.beliefs import prior_source
from rollwise.beliefs.gaussian_process import GaussianProcessPrior, regress, squared_distances
from rollwise.step import Step
from rollwise.types import RollwiseError

POINTS = {f"p{k}": np.array([k / 10, 0.0]) for k in range(40)}


def rate(k: int) -> float:
    return 1 / (1 + np.exp(-3 * np.sin(k / 6)))


def taught(every: int = 2, **settings: float) -> GaussianProcessPrior:
    source = GaussianProcessPrior(POINTS, **settings)
    ids = list(range(0, 40, every))
    won = [round(200 * rate(k)) for k in ids]
    source.observe([f"p{k}" for k in ids], won, [200 - s for s in won])
    return source


def test_the_posterior_is_that_of_the_textbook() -> None:
    rng = np.random.default_rng(0)
    seen, wanted, values = rng.normal(size=(6, 2)), rng.normal(size=(3, 2)), rng.normal(size=6)
    mean, variance = regress(seen, values, wanted, np.zeros((6, 3)), noise=0.2)
    distances = squared_distances(seen, seen)
    width, spread = np.median(distances[distances > 0]), values.var()

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return spread * np.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / (2 * width))

    inverse = np.linalg.inv(kernel(seen, seen) + 0.2 * np.eye(6))
    across = kernel(seen, wanted)
    assert mean == pytest.approx(values.mean() + across.T @ inverse @ (values - values.mean()))
    assert variance == pytest.approx(spread - np.einsum("km,kl,lm->m", across, inverse, across))


def test_prompts_never_seen_are_foretold_from_their_neighbours() -> None:
    beliefs = taught().for_step([f"p{k}" for k in range(1, 39, 2)])
    found = beliefs[:, 0] / beliefs.sum(axis=1)
    assert found == pytest.approx([rate(k) for k in range(1, 39, 2)], abs=0.06)


def test_a_prediction_far_from_everything_counts_for_less() -> None:
    source = GaussianProcessPrior({**POINTS, "far": np.array([90.0, 0.0])})
    source.observe(["p0", "p1", "p2", "p20"], [7, 6, 7, 1], [1, 2, 1, 7])
    near, far = source.for_step(["p1", "far"]).sum(axis=1)
    assert near > 2 * far


def test_the_latest_rate_of_a_prompt_replaces_the_earlier_one_and_the_oldest_prompts_go() -> None:
    source = taught(limit=3)
    source.observe(["p1", "p2"], [0, 8], [8, 0])
    source.observe(["p1"], [0], [0])
    assert source.state_dict()["prompt_ids"] == ["p38", "p1", "p2"]
    assert source.state_dict()["rates"].tolist()[1:] == [0.0, 1.0]


def test_own_share_keeps_what_was_seen_and_doubts_what_was_not() -> None:
    plain, doubting = taught(every=8), taught(every=8, own=1.0)
    new = doubting.for_step(["p3"])[0]
    assert new[0] / new.sum() == pytest.approx(1 / (1 + np.exp(-np.mean(logits(doubting)))), abs=1e-6)
    seen = doubting.for_step(["p8"])[0]
    assert abs(seen[0] / seen.sum() - rate(8)) < 0.05
    assert plain.for_step(["p3"]).sum() > new.sum()


def logits(source: GaussianProcessPrior) -> np.ndarray:
    rates = np.clip(source.state_dict()["rates"], 0.01, 0.99)
    return np.log(rates / (1 - rates))


def test_before_two_prompts_nothing_is_known() -> None:
    source = GaussianProcessPrior(POINTS)
    source.observe(["p1"], [8], [0])
    assert source.for_step(["p1", "p2"]).tolist() == [[1, 1], [1, 1]]


def test_equal_rates_and_equal_points_are_no_trouble() -> None:
    source = GaussianProcessPrior({"a": [1.0], "b": [1.0], "c": [1.0]})
    source.observe(["a", "b"], [4, 4], [4, 4])
    assert np.isfinite(source.for_step(["a", "b", "c"])).all()


def test_state_is_taken_over_and_other_kinds_are_refused() -> None:
    source, again = taught(), GaussianProcessPrior(POINTS)
    again.load_state_dict(source.state_dict())
    assert again.for_step(["p3", "p4"]).tolist() == source.for_step(["p3", "p4"]).tolist()
    with pytest.raises(RollwiseError, match="fixed"):
        again.load_state_dict({"kind": "fixed"})


def test_it_is_a_prior_like_any_other_and_gives_vip_its_rates() -> None:
    source = prior_source(taught())
    ids = ["p9", "p28", "p19"]
    step = Step(ids, Vip(), 36, rng=np.random.default_rng(0), prior=source.for_step(ids), waves=1)
    wave = step.next_wave()
    assert wave is not None and wave.counts.argmax() == 2


def test_mistakes_are_named() -> None:
    with pytest.raises(RollwiseError, match="no embedding of prompt 'new'"):
        GaussianProcessPrior(POINTS).for_step(["new"])
    with pytest.raises(RollwiseError, match="differ in length"):
        GaussianProcessPrior({"a": [1.0], "b": [1.0, 2.0]})
    with pytest.raises(RollwiseError, match="noise 0"):
        GaussianProcessPrior(POINTS, noise=0)
