"""The configuration of `rollwise train`: one YAML file, every key optional but the data, flags on top.

model: path/to/model            # a folder, a hub id, or "embedded"
data: {source: train.jsonl, columns: {prompt: question, answer: answer}}
rewards: [math_verify]
method: {allocator: adaroll, utility: min_variance, waves: 4}      # or the name of a published method: cero
prompts_per_step: 8
rollouts_per_prompt: 8
trainer: {beta: 0.0}            # any further field of TRL's GRPOConfig
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from rollwise.cli.faults import explain
from rollwise.cli.method_spec import MOST, NAME, ArmSpec, MethodSpec, Settings
from rollwise.cli.switches import refuse_switches
from rollwise.cli.yaml_input import MOST_CHARACTERS, load_yaml
from rollwise.tasks.datasets import DataSpec
from rollwise.types import RollwiseError


class EvaluationSpec(Settings):
    """How the model is measured before and after training, on `eval_data`."""

    samples: int = Field(4, ge=0, le=MOST)
    """Sampled completions per prompt; 0 leaves the sampled accuracy out."""
    batch: int = Field(128, ge=1, le=MOST)
    """Completions generated at a time."""


class OverlongSpec(Settings):
    """DAPO's penalty on long answers: 0 up to `cache` tokens before `max_completion_length`, from there falling to -1."""

    cache: int = Field(ge=1, le=MOST)


class RunConfig(Settings):
    """All that `rollwise train` needs; each arm spends `prompts_per_step` x `rollouts_per_prompt` rollouts a step."""

    name: str = Field("run", pattern=NAME)
    model: str = "embedded"
    gguf_file: str | None = None
    data: DataSpec
    eval_data: DataSpec | None = None
    rewards: list[str] = ["exact_match"]
    """Verifiers (`exact_match`, `numeric`, `math_verify`, ...) or `package.module:function` with TRL's reward signature;
    by default the verifier of `data`, where it names one, and none under `labels: majority`."""
    reward_weights: list[Annotated[float, Field(ge=-MOST, le=MOST)]] | None = None
    overlong: OverlongSpec | None = None
    """A further reward of weight 1, by TRL's helper; what counts as success stays with `outcome`, or the only reward."""
    outcome: str | None = None
    """The reward function whose 0 / 1 / None is the outcome beliefs learn from; default: the summed reward."""
    outcome_threshold: float | None = None
    method: MethodSpec = MethodSpec()
    arms: list[ArmSpec] | None = None
    compare_uniform: bool = False
    """Also train an arm with uniform allocation, from the same model, seed and budget."""
    prompts_per_step: int = Field(8, ge=1, le=MOST)
    rollouts_per_prompt: int = Field(8, ge=1, le=MOST)
    steps: int = Field(100, ge=1, le=MOST)
    learning_rate: float = Field(1e-6, gt=0, le=100)
    max_completion_length: int = Field(256, ge=1, le=MOST)
    temperature: float = Field(1.0, ge=0.01, le=100)
    seed: int = Field(0, ge=0, lt=2**32)
    loss_type: str = "dapo"
    scale_rewards: Literal["group", "batch", "none"] = "group"
    lora: dict[str, Any] | None = None
    """Train an adapter: fields of peft's `LoraConfig`, such as `{r: 8, alpha: 16, target_modules: all-linear}`."""
    evaluation: EvaluationSpec = EvaluationSpec()
    output: str | None = None
    """The run folder; default `runs/<name>-<date>-<time>`."""
    trainer: dict[str, Any] = {}
    """Further fields of TRL's `GRPOConfig`."""

    @property
    def budget(self) -> int:
        """N, rollouts per step."""
        return self.prompts_per_step * self.rollouts_per_prompt

    def planned_arms(self) -> list[ArmSpec]:
        """The arms to train: `arms`, or `method` alone, after uniform where `compare_uniform` asks for it."""
        if self.arms:
            return self.arms
        chosen = ArmSpec(name=arm_name(self.method.preset or self.method.allocator), **self.method.model_dump())
        plain = chosen.allocator == "uniform" and not (chosen.preset or chosen.selector or chosen.curators)
        if not self.compare_uniform or plain:
            return [chosen]
        levers = dict.fromkeys(("preset", "allocator_settings", "selector", "selector_settings", "curators"))
        shared = self.method.model_dump() | levers | {"curator_settings": None, "allocator": "uniform"}
        if chosen.labels != "majority":
            shared.pop("answers")  # read by the rule that votes, which this arm has not
        return [ArmSpec(name="uniform", **shared), chosen]

    @model_validator(mode="before")
    @classmethod
    def _gather_levers(cls, given: Any) -> Any:
        """`selector: ...` and `curator: ...` may stand beside `method`."""
        if not isinstance(given, dict) or not {"selector", "curator", "curators"} & set(given):
            return given
        method = given.get("method") or {}
        method = dict(method) if isinstance(method, dict) else {"preset": method}
        for key, name in (("selector", "selector"), ("curator", "curators"), ("curators", "curators")):
            if given.get(key) is not None:
                method[name] = given[key]
        return {key: value for key, value in given.items() if key not in ("selector", "curator", "curators")} | {
            "method": method
        }

    @field_validator("output")
    @classmethod
    def _somewhere(cls, given: str | None) -> str | None:
        if given is not None and not given.strip():
            raise ValueError("no folder has an empty name; give one, or leave it out for runs/<name>-<date>-<time>")
        return given

    @model_validator(mode="after")
    def _agree(self) -> RunConfig:
        voted = all(arm.labels == "majority" for arm in self.planned_arms())
        if "rewards" not in self.model_fields_set and (voted or self.data.judged_by is not None):
            self.rewards = [self.data.judged_by] if self.data.judged_by is not None else []
        if not self.rewards and not voted:
            raise ValueError("rewards: none given; name one, such as exact_match, or set method.labels: majority")
        if not self.rewards and self.eval_data is not None and self.outcome is None:
            raise ValueError(
                "rewards: eval_data is measured by one; name it (under labels: majority it trains nothing)"
            )
        if self.overlong is not None and voted:
            raise ValueError("overlong: under labels: majority only agreement trains; leave it out")
        names = [arm.name for arm in self.arms or []]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two arms are called {twice[0]!r}; give each its own name")
        if self.arms and self.compare_uniform:
            raise ValueError("give either arms or compare_uniform; an arm may say `allocator: uniform`")
        if self.budget > MOST:
            raise ValueError(
                f"rollouts_per_prompt: {self.prompts_per_step} x {self.rollouts_per_prompt} = {self.budget:,} rollouts a "
                f"step; a step has at most {MOST:,}"
            )
        if self.reward_weights is not None and len(self.reward_weights) != len(self.rewards):
            raise ValueError(f"reward_weights has {len(self.reward_weights)} entries for {len(self.rewards)} rewards")
        if self.reward_weights and not any(self.reward_weights) and not voted:
            raise ValueError("reward_weights: all are 0, so that nothing trains; give one that is not")
        if self.overlong is not None:
            if self.overlong.cache > self.max_completion_length:
                raise ValueError(
                    f"overlong.cache: {self.overlong.cache} tokens are more than max_completion_length "
                    f"{self.max_completion_length}; give fewer, such as {max(1, self.max_completion_length // 5)}"
                )
            if self.outcome is None and len(self.rewards) > 1:
                raise ValueError(
                    "outcome: overlong lowers the summed reward of successes; name the reward that says what a success is, "
                    f"such as {self.rewards[0]}"
                )
        return self


def arm_name(allocator: str) -> str:
    """What an arm is called by its rule; of `package.module:MyRule`, "MyRule"."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", allocator.rpartition(":")[2]).strip("._-")[:80] or "method"


def read_config(path: Path | None, overrides: dict[str, Any]) -> RunConfig:
    """The configuration in the YAML file `path` (None: the demo) with dotted `overrides` on top.

    Raises:
        RollwiseError: for a file that is absent or no YAML mapping, and for a key or value that does not fit.
    """
    given = demo_settings() if path is None else read_yaml(path)
    for dotted, value in overrides.items():
        *parents, last = dotted.split(".")
        place = given
        for parent in parents:
            below = place.get(parent, {})
            if parent == "method" and isinstance(below, str):
                below = {"preset": below}
            if not isinstance(below, dict):
                raise RollwiseError(f"{dotted}: {parent} is not a mapping of settings")
            place[parent] = place = dict(below)  # a copy: in YAML two settings may be one mapping (&name, *name)
        place[last] = value
    refuse_switches(given, RunConfig)
    try:
        return RunConfig.model_validate(given)
    except ValidationError as error:
        raise RollwiseError(explain(error, RunConfig)) from None


def demo_settings() -> dict[str, Any]:
    """The settings of the demo, `rollwise train` without a file."""
    return dict(load_yaml(resources.files("rollwise.cli").joinpath("demo.yaml").read_text(), "demo"))


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, or `RollwiseError` with the file and line."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a path with a null character
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise RollwiseError(f"--config {path}: {reason}; give a YAML file") from None
    given = load_yaml(text, f"--config {path}")
    if not isinstance(given, dict):
        raise RollwiseError(f"--config {path}: holds no settings; start with `model: ...` and `data: ...`")
    return given
