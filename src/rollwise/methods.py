"""Methods by name, mixed from levers, and refused where their levers contradict each other.

method = get_method("cero")                                    # a preset
method = mix(get_method("adaroll"), selector="cero", curators=("replay",))
warnings = check_method(method)                                # raises where the mix cannot work
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from rollwise.advantages import Advantage, get_advantage
from rollwise.allocators import Allocator, get_allocator
from rollwise.beliefs import prior_source
from rollwise.curators import Curator, get_curator
from rollwise.objectives import get_objective, weighs_twice
from rollwise.presets import PRESETS, Method
from rollwise.selectors import Selector, get_selector
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

LEVERS = ("allocator", "selector", "curators", "advantage")
REGROUPING = ("pods", "reuse")
"""Curators that compute advantages anew over the rows they keep."""


def get_method(name: str) -> Method:
    """The preset of that name.

    Raises:
        RollwiseError: for an unknown name.
    """
    if name not in PRESETS:
        raise RollwiseError(f"method: no {name!r}; {nearest(name, PRESETS)}")
    return PRESETS[name]


def mix(method: Method, **changes: Any) -> Method:
    """The method with other levers or settings; a lever that changes loses the settings it had.

    `curators` may be one name, several joined by "/", or a sequence. Settings of `step`, of `trainer` and of a lever that
    stays are added to those the method has.

    Raises:
        RollwiseError: for a change that names no lever or setting.
    """
    known = [entry.name for entry in fields(Method)]
    for key in changes:
        if key not in known:
            raise RollwiseError(f"method: no lever or setting {key!r}; {nearest(key, known)}")
    if "curators" in changes:
        changes["curators"] = split_names(changes["curators"])
    for lever in ("allocator", "selector"):
        key = f"{lever}_settings"
        stays = changes.get(lever, getattr(method, lever)) == getattr(method, lever)
        changes[key] = (getattr(method, key) if stays else {}) | dict(changes.get(key) or {})
    names = changes.get("curators", method.curators)
    changes["curator_settings"] = merge_by_name(method.curator_settings, changes.get("curator_settings") or {}, names)
    for key in ("step", "trainer"):
        if key in changes:
            changes[key] = getattr(method, key) | dict(changes[key])
    return replace(method, **changes)


def check_method(method: Method) -> list[str]:
    """Build every lever once; warnings about what is done twice.

    Raises:
        RollwiseError: a setting that is not valid, or levers that cannot work together, with the reason.
    """
    build_allocator(method)
    selector = build_selector(method, steps=1)
    curators = build_curators(method)
    get_advantage(method.advantage)
    prior_source(method.step.get("prior", "1,1"))
    check_used(method.selector, method.selector_settings, method.curators, method.curator_settings)
    check_mix(selector, curators, method.advantage)
    found = weighs_twice(method.step.get("objective", "none"), method.advantage)
    return [*([found] if found else []), *overlaps(curators, method.step.get("objective", "none"))]


def check_used(
    selector: str | None,
    selector_settings: Mapping[str, Any] | None,
    curators: Sequence[str],
    curator_settings: Mapping[str, Any] | None,
) -> None:
    """Raise `RollwiseError` for settings of a selector or curator that is not in use."""
    if selector_settings and not selector:
        raise RollwiseError(
            f"selector_settings: {', '.join(map(str, selector_settings))} would have no effect, as no selector is set; "
            "name one, such as selector: cero, or leave them out"
        )
    for name in curator_settings or {}:
        if name not in curators:
            known = nearest(str(name), curators) if curators else "none is in use"
            raise RollwiseError(
                f"curator_settings: {name} is no curator of this run ({known}); name it in curators, or leave it out"
            )


def check_answers(answers: str, labels: str, allocator: Allocator) -> None:
    """Raise `RollwiseError` where `answers` says how answers are found and nothing reads them."""
    if answers != "marked" and labels != "majority" and "answer" not in getattr(allocator, "needs", ()):
        raise RollwiseError(
            f"answers: {answers} would have no effect, as nothing votes; set labels: majority (method: optpo), or leave it "
            "out"
        )


def check_mix(
    selector: Selector | None, curators: Sequence[Curator], advantage: str | Advantage | None = None
) -> None:
    """Raise `RollwiseError` where these levers cannot work together."""
    names = [curator.name for curator in curators]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise RollwiseError(f"curators: {twice[0]} is given twice; give each curator once")
    if "dynamic" in names:
        if "codapo" in names or (selector is not None and selector.name == "resampling"):
            raise RollwiseError(
                "curators: CoDaPO and dynamic sampling exclude each other: its second phase chooses by the weights of the "
                "step before, dead groups included; drop one of the two"
            )
        if names[0] != "dynamic" and any(
            curator.needs & {"payload"} for curator in curators[: names.index("dynamic")]
        ):
            raise RollwiseError(
                f"curators: {names[0]} before dynamic brings rollouts that would wait with the fresh ones and age; "
                "put dynamic first"
            )
    if "reuse" in names and "replay" in names and names.index("replay") < names.index("reuse"):
        raise RollwiseError("curators: replay leaves dead groups out before reuse can mend them; put reuse first")
    again = [name for name in names if name in REGROUPING]
    if again and getattr(advantage, "name", advantage) == "global_baseline":
        raise RollwiseError(
            f"curators: {again[0]} computes advantages anew over the rows it keeps, and global_baseline means those of "
            "everything drawn; drop one of the two, or set advantage: dr_grpo"
        )


def overlaps(curators: Sequence[Curator], objective: Any) -> list[str]:
    """Warnings where two levers weigh rows by the same thing."""
    found = []
    for place, first in enumerate(curators):
        for second in curators[place + 1 :]:
            shared = sorted(first.weighs_by & second.weighs_by)
            if shared:
                found.append(f"curators: {first.name} and {second.name} both weigh by {' and '.join(shared)}")
        if "success_rate" in first.weighs_by and get_objective(objective).name not in ("none", "mean"):
            found.append(f"curators: {first.name} and objective {objective} both weigh by success_rate")
    return found


def build_allocator(method: Method) -> Allocator:
    """A fresh allocator."""
    return get_allocator(method.allocator, method.allocator_settings)


def build_selector(method: Method, steps: int, seed: int = 0) -> Selector | None:
    """A fresh selector for a run of `steps` full steps, or None where prompts come as they do."""
    if method.selector is None:
        return None
    return get_selector(method.selector, method.selector_settings, steps=steps, seed=seed)


def build_curators(method: Method, updates: int = 1) -> tuple[Curator, ...]:
    """Fresh curators in order; `updates` is the optimizer updates of a step."""
    return tuple(get_curator(name, method.curator_settings.get(name), updates=updates) for name in method.curators)


def split_names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names given as one text joined by "/" or as a sequence."""
    if given is None:
        return ()
    return tuple(part.strip() for part in given.split("/") if part.strip()) if isinstance(given, str) else tuple(given)


def expand(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of the preset they name under `preset`, which they override; the preset's name is kept.

    Keys are those of `rollwise train`'s `method` and of `RollwiseGRPOConfig`: levers, their settings, and settings of the
    step by name. Settings of a lever that stays the preset's are added to the preset's; those of a lever that is replaced
    are dropped.

    Raises:
        RollwiseError: an unknown preset.
    """
    own = {key: value for key, value in given.items() if key != "preset"}
    if not given.get("preset"):
        return own
    method = get_method(str(given["preset"]))
    whole: dict[str, Any] = {"allocator": method.allocator, "advantage": method.advantage} | method.step
    if method.selector is not None:
        whole |= {"selector": method.selector, "selector_settings": method.selector_settings}
    if method.curators:
        whole |= {"curators": list(method.curators), "curator_settings": method.curator_settings}
    utility = method.allocator_settings.get("utility")
    rest = {key: value for key, value in method.allocator_settings.items() if key != "utility"}
    whole |= ({"utility": utility} if utility else {}) | ({"allocator_settings": rest} if rest else {})
    for lever in ("allocator", "selector"):
        key = f"{lever}_settings"
        if lever in own and own[lever] != whole.get(lever):
            whole.pop(key, None)
        elif own.get(key, {}) is None or isinstance(own.get(key), Mapping):
            own[key] = whole.get(key, {}) | dict(own[key] or {}) or own[key]
    names, settings = own.get("curators", method.curators), own.get("curator_settings") or {}
    if method.curator_settings and isinstance(settings, Mapping) and isinstance(names, (str, Sequence, type(None))):
        own["curator_settings"] = merge_by_name(method.curator_settings, settings, split_names(names))
    return whole | own


def merge_by_name(old: Mapping[str, Any], new: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Settings by name: those of `new` added, key by key, to what `old` has of these `names`; others of `old` go."""
    kept = {name: settings for name, settings in old.items() if name in names}
    return kept | {
        name: {**kept.get(name, {}), **settings} if isinstance(settings, Mapping) else settings
        for name, settings in new.items()
    }
