"""The method of a run's configuration: how rollouts are allocated and weighed, by name or lever by lever."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from rollwise.allocators import ALLOCATORS, get_allocator
from rollwise.beliefs import prior_source
from rollwise.beliefs.source import DISCOUNT
from rollwise.cli.lever_settings import check_allocator, read_lever_settings
from rollwise.curators import CURATORS
from rollwise.methods import check_answers, check_used, expand, split_names
from rollwise.objectives import get_objective
from rollwise.selectors import SELECTORS
from rollwise.tasks.answers import read_answers

MOST = 1_000_000
"""Above it a count is a slip of the finger, and would end in a lack of memory instead of a line."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
"""Of a run or an arm: a folder is called so."""


FILES = ("config.yaml", "run.json", "run.json.tmp", "report.html")
"""Names in a run folder that no arm may have."""


class Settings(BaseModel):
    """A mapping that refuses keys it does not know, and numbers that are none."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class MethodSpec(Settings):
    """How a step's rollouts are allocated and weighed; the fields of `RollwiseGRPOConfig` of the same names."""

    preset: str | None = None
    """A published method (`rollwise methods` lists them); what stands beside it overrides it."""
    allocator: str = "adaroll"
    """`adaroll`, `uniform` (stock GRPO through the same code) or `observe` (stock GRPO, recorded only)."""
    allocator_settings: dict[str, Any] | None = None
    selector: str | None = None
    """Which prompts enter a step: `cero`, `mopps`, `greso`, `resampling` or `package.module:Class`."""
    selector_settings: dict[str, Any] | None = None
    curators: list[str] | None = None
    """Which rollouts train, in order: `replay`, `reuse`, `pods`, `aero`, `balanced`, `codapo`, `dynamic`, `live`."""
    curator_settings: dict[str, dict[str, Any]] | None = None
    utility: str = "min_variance"
    advantage_form: Literal["raw", "normalised"] = "raw"
    waves: int = Field(4, ge=1, le=MOST)
    """Decisions per step; rollouts of one wave are generated together."""
    sequential: bool = False
    n_min: int = Field(2, ge=0, le=MOST)
    n_max: int | None = Field(None, ge=1, le=MOST)
    prior: str = "1,1"
    """Belief at the opening of a step: a Beta a,b; `empirical` (recent groups), `carried` (each prompt's own past) or
    `gaussian_process` (prompts that read alike)."""
    prior_settings: dict[str, Any] | None = None
    """Of `gaussian_process`: `own`, `noise`, `eps`, `limit`, and `embedding`, the address of what makes vectors."""
    prior_discount: float = Field(DISCOUNT, gt=0, le=1)
    """Share of a prompt's evidence that survives from visit to visit under `prior: carried`."""
    objective: str = "none"
    """What is ascended: `none` (as published), `mean`, `log`, `pass@k` or `package.module:function`."""
    weighting: Literal["per_rollout", "per_prompt"] = "per_rollout"
    advantage: str | None = None
    """`grpo`, `grpo_batch` or `dr_grpo`; by default what `scale_rewards` says."""
    labels: Literal["verifier", "majority"] = "verifier"
    """Where outcomes come from; under `majority` no reward function is needed, and those given are only logged."""
    answers: str = "marked"
    """How a vote finds a completion's answer: `marked`, `last_number`, `whole`, ... or `package.module:function`."""
    block_prompts: int | None = Field(None, ge=1, le=MOST)

    @model_validator(mode="before")
    @classmethod
    def _expanded(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = {"preset": given}
        if not isinstance(given, dict):
            return given
        whole = expand(given)
        if isinstance(whole.get("curators"), str):
            whole["curators"] = list(split_names(whole["curators"]))
        return whole | ({"preset": given["preset"]} if given.get("preset") else {})

    @field_validator("prior", mode="before")
    @classmethod
    def _word_or_pair(cls, given: Any) -> str:
        if given is None:
            raise ValueError("give a Beta a,b, such as 1,1; empirical; or carried")
        prior_source(given)
        return given if isinstance(given, str) else ",".join(f"{number:g}" for number in given)

    @field_validator("allocator_settings", "selector_settings")
    @classmethod
    def _of_their_types(cls, given: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        lever = str(info.field_name).partition("_")[0]
        registry = {"allocator": ALLOCATORS, "selector": SELECTORS}[lever]
        found = read_lever_settings(info.data.get(lever), registry, given)
        if lever == "allocator":
            check_allocator(info.data.get(lever), found)
        return found

    @field_validator("prior_settings")
    @classmethod
    def _of_the_prior(cls, given: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        """Numbers that YAML reads as text, such as 1e-3, become numbers; the prior refuses what does not fit."""
        read = {key: value if key == "embedding" else read_number(value) for key, value in (given or {}).items()}
        if "prior" in info.data:
            prior_source(info.data["prior"], settings=read)
        return given and read

    @field_validator("curator_settings")
    @classmethod
    def _of_their_curators(cls, given: dict[str, dict[str, Any]] | None) -> dict[str, dict[str, Any]] | None:
        return given and {name: read_lever_settings(name, CURATORS, own) or {} for name, own in given.items()}

    @model_validator(mode="after")
    def _used(self) -> MethodSpec:
        check_used(self.selector, self.selector_settings, self.curators or (), self.curator_settings)
        if self.allocator in ALLOCATORS:
            check_answers(self.answers, self.labels, get_allocator(self.allocator, self.allocator_settings))
        return self

    @field_validator("answers")
    @classmethod
    def _found(cls, given: str) -> str:
        if ":" not in given:
            read_answers(given)
        return given

    @field_validator("objective")
    @classmethod
    def _known(cls, given: str) -> str:
        return get_objective(given).name if ":" not in given else given


def read_number(value: Any) -> Any:
    """The number that a text says, anything else as it is."""
    for kind in (int, float) if isinstance(value, str) else ():
        with contextlib.suppress(ValueError):
            return kind(value)
    return value


class ArmSpec(MethodSpec):
    """One arm of a comparison: a method under a name."""

    name: str = Field(pattern=NAME)

    @field_validator("name")
    @classmethod
    def _free(cls, given: str) -> str:
        if given in FILES:
            raise ValueError(f"{given} is a file of every run folder; give the arm another name")
        return given
