"""What competes: an allocation rule with its settings and the step settings it wants otherwise than the rest.

Written `NAME@key=value@key=value`, NAME being an allocator, a utility (AdaRoll with it) or an allocator of one's own as
`package.module:Class`, for example `min_variance@sequential=true@n_min=0` or `sum_variance@prior=carried@waves=8`. In a
prior, `/` stands for the comma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.allocators import ALLOCATORS, Allocator, get_allocator
from rollwise.imports import load_function
from rollwise.suggest import nearest
from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES

STEP_SETTINGS = ("waves", "n_min", "n_max", "prior", "discount", "advantage", "weighting")


@dataclass(frozen=True)
class Method:
    """`label` names it in results; `rule` are settings of the allocator, `step` those that replace the common ones."""

    label: str
    allocator: str
    rule: tuple[tuple[str, Any], ...] = ()
    step: tuple[tuple[str, Any], ...] = ()

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
    if name not in UTILITIES and name not in ALLOCATORS and ":" not in name:
        raise RollwiseError(f"method: no {name!r}; {nearest(name, (*ALLOCATORS, *UTILITIES))}")
    rule: dict[str, Any] = {"utility": name} if name in UTILITIES else {}
    step: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise RollwiseError(f"method {text}: {setting!r} is no setting; write key=value, such as waves=8")
        (step if key in STEP_SETTINGS else rule)[key] = read_value(key, value)
    if name in ("uniform", "observe") and rule:
        raise RollwiseError(f"method {text}: {name} has no setting {next(iter(rule))!r}; remove it")
    return Method(text.strip(), "adaroll" if name in UTILITIES else name, tuple(rule.items()), tuple(step.items()))


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
