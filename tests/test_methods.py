"""Methods by name: every preset builds and takes a step, levers mix, and contradictions are refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollwise.beliefs import prior_source
from rollwise.methods import (
    build_allocator,
    build_curators,
    build_selector,
    check_method,
    expand,
    get_method,
    mix,
)
from rollwise.presets import FAMILIES, PRESETS
from rollwise.step import Step
from rollwise.types import RollwiseError, StepRecord


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_takes_steps(name: str) -> None:
    """Three steps of 8 prompts and 64 rollouts: paid within the budget, finite, and never more rows than rollouts."""
    method = get_method(name)
    assert check_method(method) == []
    assert method.name == name
    assert method.family in FAMILIES
    for record in play(name, 3):
        assert record.counts.sum() <= 64
        assert np.isfinite(record.advantages).all()
        assert len(record.trained) + len(record.stored) <= 64


def play(name: str, steps: int) -> list[StepRecord]:
    method = get_method(name)
    allocator, selector, curators = build_allocator(method), build_selector(method, steps), build_curators(method)
    pool = [f"q{k}" for k in range(24)]
    rates = np.linspace(0.0, 1.0, 24)
    step_settings = dict(method.step)
    vectors = {key: np.array([rate, 1.0]) for key, rate in zip(pool, rates, strict=True)}
    prior = prior_source(step_settings.pop("prior", "1,1"), embeddings=vectors)
    records = []
    for index in range(steps):
        rng = np.random.default_rng(index)
        places = np.arange(8) + 8 * index % 24 if selector is None else selector.select(pool, prior, 8, rng)
        ids = [pool[place] for place in places]
        copies = selector is not None and selector.copies
        slots = ids if copies else list(dict.fromkeys(ids))
        step = Step(
            ids,
            allocator,
            8 * len(ids),
            rng=rng,
            index=index,
            prior=prior.for_step(slots),
            advantage=method.advantage,
            curators=curators,
            copies=copies,
            **step_settings,
        )
        while wave := step.next_wave():
            step.observe(
                *(
                    r.result(
                        (won := bool(rng.random() < rates[int(r.prompt_id[1:])])),
                        answer="right" if won else f"wrong{rng.integers(3)}",
                        tokens=3,
                        logprob=-1.0,
                        gradient_norm=1.0,
                    )
                    for r in wave.rollouts
                )
            )
        records.append(step.close())
        prior.observe(records[-1].prompt_ids, records[-1].successes, records[-1].failures)
        if selector is not None:
            selector.observe(records[-1])
    return records


def test_vip_is_the_published_predictor_and_its_carried_form_has_a_name_of_its_own() -> None:
    """`vip` sets prompts apart that it never saw, by those that are near; `vip_beta` cannot."""
    for name, form in (
        ("vip", "rloo"),
        ("vip_dr_grpo", "dr_grpo"),
        ("vip_beta", "rloo"),
        ("vip_beta_dr_grpo", "dr_grpo"),
    ):
        method = get_method(name)
        assert method.step == {"prior": "carried" if "beta" in name else "gaussian_process"}
        assert build_allocator(method).form == form  # type: ignore[attr-defined]
        assert method.advantage == form
        unseen = play(name, 2)[1].counts
        assert (len(set(unseen.tolist())) == 1) == ("beta" in name)


def test_levers_mix_and_a_new_lever_drops_the_old_ones_settings() -> None:
    mixed = mix(get_method("adaroll"), selector="cero", curators="pods/replay", step={"waves": 8})
    assert (mixed.allocator, mixed.selector, mixed.curators) == ("adaroll", "cero", ("pods", "replay"))
    assert mixed.step == {"waves": 8}
    assert check_method(mixed) == []
    assert mix(mixed, allocator="hora").allocator_settings == {}
    assert mix(mixed, allocator="adaroll").allocator_settings == {"utility": "min_variance"}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("codapo", {"curators": "codapo/dynamic"}, "CoDaPO and dynamic sampling exclude each other"),
        ("dapo", {"selector": "resampling"}, "exclude each other"),
        ("replay", {"curators": "replay/replay"}, "given twice"),
        ("replay", {"curators": "replay/dynamic"}, "put dynamic first"),
        ("replay", {"curators": "replay/reuse"}, "put reuse first"),
        ("grpo", {"selector": "ceroo"}, "did you mean 'cero'"),
        ("grpo", {"curators": "pod"}, "did you mean 'pods'"),
        ("grpo", {"curator": "pods"}, "did you mean 'curators'"),
        ("pods", {"curator_settings": {"pods": {"keep": 1}}}, "pods keep"),
        ("grpo", {"advantage": "grop"}, "did you mean 'grpo'"),
        ("reinforce_ada", {"curators": "pods"}, "pods computes advantages anew .* set advantage: dr_grpo"),
        ("pods", {"advantage": "global_baseline"}, "pods computes advantages anew"),
        ("ar3po", {"advantage": "global_baseline"}, "reuse computes advantages anew"),
        ("grpo", {"selector_settings": {"foo": 5}}, "selector_settings: foo would have no effect"),
        ("replay", {"curator_settings": {"pods": {}}}, "pods is no curator of this run .valid: replay"),
        ("replay", {"curator_settings": {"replai": {}}}, "did you mean 'replay'"),
    ],
)
def test_impossible_mixes_are_refused_with_the_reason(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RollwiseError, match=message):
        check_method(mix(get_method(name), **changes))


@pytest.mark.parametrize("name", [name for name, method in PRESETS.items() if method.allocator_settings])
def test_one_setting_of_a_presets_rule_leaves_the_others(name: str) -> None:
    published = expand({"preset": name})
    own = expand({"preset": name, "allocator_settings": {"extra": 4}})
    assert own == published | {"allocator_settings": published.get("allocator_settings", {}) | {"extra": 4}}
    mixed = mix(get_method(name), allocator_settings={"extra": 4})
    assert mixed.allocator_settings == PRESETS[name].allocator_settings | {"extra": 4}
    replaced = expand({"preset": name, "allocator": "ar3po", "allocator_settings": {"first": 4}})
    assert replaced["allocator_settings"] == {"first": 4}


@pytest.mark.parametrize("name", [name for name, method in PRESETS.items() if method.curator_settings])
def test_one_setting_of_a_presets_curator_leaves_the_others_while_it_is_in_use(name: str) -> None:
    (curator,) = PRESETS[name].curators
    added = {curator: {"live_by": "outcome", "groups": 3}}
    given = {"curator_settings": {curator: {"groups": 3}}}
    assert expand({"preset": name} | given)["curator_settings"] == added
    assert mix(get_method(name), **given).curator_settings == added
    further = expand({"preset": name, "curators": f"{curator}/pods", "curator_settings": {"pods": {"share": 0.5}}})
    assert further["curator_settings"] == {curator: {"live_by": "outcome"}, "pods": {"share": 0.5}}
    for other in (["pods"], [], None):
        assert expand({"preset": name, "curators": other})["curator_settings"] == {}
        assert mix(get_method(name), curators=other).curator_settings == {}
    assert expand({"preset": name, "curator_settings": {curator: {"live_by": "advantage"}}})["curator_settings"] == {
        curator: {"live_by": "advantage"}
    }


def test_what_a_user_says_goes_before_what_the_run_knows() -> None:
    cero = build_selector(mix(get_method("cero"), selector_settings={"steps": 100, "seed": 3}), steps=7, seed=1)
    assert (cero.steps, cero.seed) == (100, 3)  # type: ignore[union-attr]
    known = build_selector(get_method("cero"), steps=7, seed=1)
    assert (known.steps, known.seed) == (7, 1)  # type: ignore[union-attr]
    (replay,) = build_curators(mix(get_method("replay"), curator_settings={"replay": {"updates": 3}}), updates=2)
    assert replay.updates == 3  # type: ignore[attr-defined]
    with pytest.raises(RollwiseError, match="pods has no setting 'name'"):
        build_curators(mix(get_method("pods"), curator_settings={"pods": {"name": "x"}}))


def test_weighing_twice_for_the_same_thing_warns() -> None:
    codapo = mix(get_method("codapo"), step={"objective": "log"}, advantage="dr_grpo")
    assert check_method(codapo) == ["curators: codapo and objective log both weigh by success_rate"]
    assert "weighs twice" in check_method(mix(get_method("grpo"), step={"objective": "log"}))[0]


def test_an_unknown_method_names_the_nearest() -> None:
    with pytest.raises(RollwiseError, match="did you mean 'cero'"):
        get_method("cerro")


def test_a_presets_settings_yield_to_ones_own() -> None:
    assert expand({"waves": 3}) == {"waves": 3}
    cero = expand({"preset": "cero", "curators": ["replay"], "selector_settings": {"per_prompt": 1}})
    assert cero["selector"] == "cero"
    assert cero["selector_settings"] == {"per_prompt": 1}
    assert cero["curators"] == ["replay"]
    assert expand({"preset": "adaroll"})["utility"] == "min_variance"
    assert "allocator_settings" not in expand({"preset": "dars_hw", "allocator": "uniform"})
    assert expand({"preset": "dars_hw"})["allocator_settings"] == {"form": "hw"}
    assert expand({"preset": "neyman"})["prior"] == "carried"
