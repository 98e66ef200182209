"""What competes: an allocation rule with its settings and the step settings it wants otherwise than the rest.

Written `NAME@key=value@key=value`, NAME being an allocator, a utility (AdaRoll with it) or an allocator of one's own as
`package.module:Class`, for example `min_variance@sequential=true@n_min=0` or `sum_variance@prior=carried@waves=8`. In a
prior, `/` stands for the comma. Levers are added as `uniform@selector=mopps@curator=pods/replay@selector.candidates=4`; a
published method with all its levers is `preset.cero`, and `cero` where no allocator has that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.allocators import ALLOCATORS, Allocator, get_allocator
from rollwise.curators import Curator, get_curator
from rollwise.imports import load_function
from rollwise.methods import check_mix, split_names
from rollwise.presets import PRESETS
from rollwise.selectors import Selector, get_selector
from rollwise.suggest import nearest
from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES

STEP_SETTINGS = ("waves", "n_min", "n_max", "prior", "discount", "advantage", "weighting")
LEVERS = ("selector", "curator")


@dataclass(frozen=True)
class Method:
    """`label` names it in results; `rule` are settings of the allocator, `step` those that replace the common ones.

    `levers` are the selector and curators by name and, as `selector.key` and `curator.key`, their settings.
    """

    label: str
    allocator: str
    rule: tuple[tuple[str, Any], ...] = ()
    step: tuple[tuple[str, Any], ...] = ()
    levers: tuple[tuple[str, Any], ...] = ()

    def choose_prompts(self, steps: int, seed: int) -> Selector | None:
        """A fresh selector for a run of that many full steps, or None where prompts come in passes."""
        name = dict(self.levers).get("selector")
        return None if name is None else get_selector(name, self._settings("selector"), steps=steps, seed=seed)

    def choose_rows(self) -> tuple[Curator, ...]:
        """Fresh curators in order; settings go to each."""
        names = split_names(dict(self.levers).get("curator"))
        curators = tuple(get_curator(name, self._settings("curator")) for name in names)
        check_mix(self.choose_prompts(1, 0), curators, dict(self.step).get("advantage"))
        return curators

    def _settings(self, lever: str) -> dict[str, Any]:
        return {key.partition(".")[2]: value for key, value in self.levers if key.startswith(f"{lever}.")}

    def build(self) -> Allocator:
        """The allocator.

        Raises:
            RollwiseError: an unknown setting or one it refuses.
        """
        own = load_function(self.allocator, "method") if ":" in self.allocator else None
        try:
            return own(**dict(self.rule)) if own else get_allocator(self.allocator, **dict(self.rule))
        except TypeError:
            names = ", ".join(key for key, _ in self.rule)
            raise RollwiseError(f"method {self.label}: {self.allocator} and a step have no setting {names}") from None


def parse_method(text: str) -> Method:
    """Read one method.

    Raises:
        RollwiseError: a name that is neither rule nor utility, or a setting that is not `key=value`.
    """
    name, *settings = text.strip().split("@")
    whole = name.removeprefix("preset.")
    if whole in PRESETS and (whole != name or whole not in ALLOCATORS):
        name, rule, step, levers = unfold(whole)
    elif name in UTILITIES or name in ALLOCATORS or ":" in name:
        rule, step, levers = {"utility": name} if name in UTILITIES else {}, {}, {}
    else:
        raise RollwiseError(f"method: no {name!r}; {nearest(name, (*ALLOCATORS, *UTILITIES, *PRESETS))}")
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise RollwiseError(f"method {text}: {setting!r} is no setting; write key=value, such as waves=8")
        if key in LEVERS:
            levers[key] = value
        elif key.partition(".")[0] in LEVERS:
            levers[key] = read_value(key, value)
        else:
            (step if key in STEP_SETTINGS else rule)[key] = read_value(key, value)
    if name in ("uniform", "observe") and rule:
        raise RollwiseError(f"method {text}: {name} has no setting {next(iter(rule))!r}; remove it")
    if step.get("prior", "gaussian_process" if name == "vip" else None) == "gaussian_process":
        raise RollwiseError(
            f"method {text}: foretells success rates from the texts of prompts, which the simulator has not; use vip_beta, "
            "its form with carried beliefs"
        )
    allocator = "adaroll" if name in UTILITIES else name
    return Method(text.strip(), allocator, tuple(rule.items()), tuple(step.items()), tuple(levers.items()))


def unfold(name: str) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A preset's allocator, its settings, settings of the step and levers; labels and objectives stay the common ones."""
    method = PRESETS[name]
    step = {key: value for key, value in method.step.items() if key in STEP_SETTINGS} | {"advantage": method.advantage}
    levers: dict[str, Any] = {"selector": method.selector} if method.selector else {}
    levers |= {f"selector.{key}": value for key, value in method.selector_settings.items()}
    if method.curators:
        levers["curator"] = "/".join(method.curators)
    for settings in method.curator_settings.values():
        levers |= {f"curator.{key}": value for key, value in settings.items()}
    return method.allocator, dict(method.allocator_settings), step, levers


def parse_methods(texts: str | Sequence[str]) -> list[Method]:
    """Read several, given as a list or separated by commas.

    Raises:
        RollwiseError: none, or one twice.
    """
    given = texts.split(",") if isinstance(texts, str) else [part for text in texts for part in text.split(",")]
    methods = [parse_method(text) for text in given if text.strip()]
    labels = [method.label for method in methods]
    if not methods or len(set(labels)) < len(labels):
        raise RollwiseError("methods: give at least one, and none twice, such as uniform,min_variance")
    return methods


def read_value(key: str, value: str) -> Any:
    """true, false, none, a number, or the text."""
    plain = {"true": True, "false": False, "none": None}
    if value.lower() in plain:
        return plain[value.lower()]
    if key == "prior":
        return value.replace("/", ",")
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
