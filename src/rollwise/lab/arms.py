"""What differs between the runs that are compared: an arm is a rule with its settings, written in one line of text.

uniform
adaroll:sum_variance
adaroll:min_variance@waves=8@prior=carried@loss=dapo
uniform@selector=cero@curator=replay@curator.share=0.3
cero, preset.aero: published methods with all their levers; the prefix where an allocator has the same name
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from rollwise.advantages import get_advantage
from rollwise.allocators import Allocator, get_allocator
from rollwise.beliefs import prior_source
from rollwise.beliefs.costs import TokenCosts
from rollwise.curators import Curator, get_curator
from rollwise.lab.losses import ESTIMATORS, get_loss
from rollwise.lab.published import preset_of, unfold
from rollwise.lab.training import Training
from rollwise.objectives import Objective, get_objective
from rollwise.selectors import Selector, get_selector
from rollwise.suggest import nearest
from rollwise.types import RollwiseError
from rollwise.utilities import UTILITIES
from rollwise.votes import check_labels
from rollwise.weighting import check_weighting

WEIGH_BY = ("prior", "carried", "oracle")
STRONGEST = 1e9
OWN_PRIORS = ("oracle", "gaussian_process")
"""Priors that need more than counts: the model."""
KINDS = dict.fromkeys(("lr", "discount", "strength"), float) | dict.fromkeys(
    ("prior", "objective", "loss", "advantage", "weighting", "weigh_by", "labels", "budget", "costs", "schedule"), str
)
"""What settings are read as, where a number or a word might be either."""
UNMARKED: dict[str, Any] = {"selector": None, "curator": None, "lever_settings": {}, "labels": "verifier"}
UNMARKED |= {"budget": "rollouts", "costs": "prompt"}
"""Settings that leave no mark in an arm's key where they are these, so that files of earlier versions keep their names."""
Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Arm:
    """One method as it is run.

    Args:
        allocator, settings: the rule and its keyword arguments.
        waves, n_min, n_max: as in `rollwise.step.Step`. Uniform takes one wave whatever is said.
        prior: belief at the opening, as `rollwise.beliefs.prior_source` reads it; "gaussian_process", predicted from
            prompts that the warm model represents alike; or "oracle": Beta of `strength` observations at the true success
            rate, which costs no rollout of the budget and no real trainer has.
        discount: of carried beliefs.
        loss, advantage: of `rollwise.lab.losses`, and an estimator; by default the one the loss was published with.
        weighting: `per_rollout` or `per_prompt`.
        objective: what is ascended, or None where `curve` says so: points (p, w), straight lines between.
        weigh_by: the belief whose mean sets a prompt's objective weight: that of the allocator (`prior`), a carried one
            kept beside it, or the true rate; so that what is ascended and how rollouts are shared can be told apart. Only
            weights by `prior` are seen by the allocator.
        selector, curator: names or addresses of the rules for which prompts enter and which rollouts train, several
            curators joined by "/"; without a selector prompts come in shuffled passes.
        lever_settings: "selector" and "curator" to their keyword arguments, written `selector.key=value` in a line.
        budget: what a step of the arm spends, `rollouts`, or `tokens`: as many a step as the run's `tokens` say, of which
            `costs` are told to the rule: running means by `prompt` and outcome, or of the `pool` by outcome.
        labels: where outcomes come from, the `verifier` or the `majority` of the answers to a prompt.
        lr, updates, schedule: of AdamW; passes over a step's rollouts; `constant`, or `linear` to 0 by rollouts spent.
    """

    name: str
    allocator: str = "uniform"
    settings: dict[str, Any] = field(default_factory=dict)
    waves: int = 4
    n_min: int = 2
    n_max: int | None = None
    prior: str = "1,1"
    discount: float = 0.85
    strength: float = 64.0
    loss: str = "grpo"
    advantage: str | None = None
    weighting: str = "per_rollout"
    objective: str = "none"
    curve: Curve | None = None
    weigh_by: str = "prior"
    selector: str | None = None
    curator: str | None = None
    lever_settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: str = "verifier"
    budget: str = "rollouts"
    costs: str = "prompt"
    lr: float = 5e-4
    updates: int = 1
    schedule: str = "constant"

    def __post_init__(self) -> None:
        """Raises `RollwiseError` naming the first setting that is not valid."""
        self.rule()
        get_loss(self.loss)
        get_advantage(self.estimator)
        check_weighting(self.weighting)
        check_labels(self.labels)
        self.ascended()
        self.choose_prompts(1, 0)
        self.choose_rows()
        if self.prior not in OWN_PRIORS:
            prior_source(self.prior, discount=self.discount)
        for key, value, valid in (
            ("weigh_by", self.weigh_by, WEIGH_BY),
            ("schedule", self.schedule, ("constant", "linear")),
            ("budget", self.budget, ("rollouts", "tokens")),
            ("costs", self.costs, ("prompt", "pool")),
        ):
            if value not in valid:
                raise RollwiseError(f"{key}: no {value!r}; {nearest(str(value), valid)}")
        if not 0 < self.lr <= 1 or not 0 < self.strength <= STRONGEST:
            raise RollwiseError(
                f"lr {self.lr}, strength {self.strength}: give positive numbers, an lr up to 1 and a strength up to "
                f"{STRONGEST:g}"
            )
        if not self.updates >= 1 or self.updates % 1:
            raise RollwiseError(f"updates: {self.updates}; give a whole number of 1 or more")

    @property
    def estimator(self) -> str:
        """Name of the advantage estimator."""
        return self.advantage or ESTIMATORS[self.loss]

    @property
    def key(self) -> str:
        """Digest of everything but the name: two arms that run alike have the same."""
        settings = {
            name: value
            for name, value in asdict(self).items()
            if name != "name" and not (name in UNMARKED and value == UNMARKED[name])
        }
        return hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=5).hexdigest()

    def rule(self, tokens: int | None = None) -> Allocator:
        """A fresh allocator; of one that spends tokens, with that many a step.

        Raises:
            RollwiseError: a setting that is not valid, or a rule that has no budget in tokens.
        """
        spends = {"token_budget": tokens or 1} if self.budget == "tokens" else {}
        try:
            rule = get_allocator(self.allocator, **self.settings, **spends)
        except TypeError as error:
            raise RollwiseError(f"allocator: {self.allocator} takes no such setting ({error})") from None
        if spends and not getattr(rule, "token_budget", None):
            raise RollwiseError(f"budget: {self.allocator} spends rollouts, not tokens; give budget=rollouts")
        return rule

    def token_costs(self, training: Training) -> TokenCosts | None:
        """Fresh running means of tokens a rollout takes, or None where the rule is not told of them.

        Raises:
            RollwiseError: where the run does not end by tokens.
        """
        if self.budget != "tokens":
            return None
        if training.tokens is None:
            raise RollwiseError("budget: tokens, but the run ends by rollouts; give until tokens and how many a step")
        return TokenCosts(training.tokens / training.budget, self.discount, by_prompt=self.costs == "prompt")

    def choose_prompts(self, steps: int, seed: int) -> Selector | None:
        """A fresh selector for a run of that many steps, or None for shuffled passes."""
        if self.selector is None:
            return None
        return get_selector(self.selector, self.lever_settings.get("selector"), steps=steps, seed=seed)

    def choose_rows(self) -> tuple[Curator, ...]:
        """Fresh curators, in the order they are applied; settings go to each."""
        settings = self.lever_settings.get("curator", {})
        names = self.curator.split("/") if self.curator else ()
        return tuple(get_curator(name, settings, updates=self.updates) for name in names)

    def ascended(self) -> Objective:
        """The objective."""
        if self.curve is None:
            return get_objective(self.objective)
        rates, weights = (np.array(column, dtype=np.float64) for column in zip(*self.curve, strict=True))
        return get_objective(Objective("curve", lambda p: np.interp(p, rates, weights)))


def parse_arm(text: str) -> Arm:
    """Read `rule[:utility][@setting=value]...`; settings that `Arm` has not go to the rule.

    Raises:
        RollwiseError: an unknown rule, setting or value.
    """
    head, *extras = re.split(r"@(?=[\w.]+=)", text.strip())
    allocator, _, utility = head.partition(":")
    if allocator in UTILITIES:
        allocator, utility = "adaroll", allocator
    own: dict[str, Any] = {}
    settings: dict[str, Any] = {"utility": utility} if utility else {}
    known = {entry.name for entry in fields(Arm)} - {"name", "allocator", "settings", "lever_settings"}
    if method := preset_of(allocator):
        allocator, settings, own = unfold(method)
        absent = next((key for key in method.step if key not in known), None)
        if absent:
            raise RollwiseError(
                f"methods: {method.name} sets {absent}, which the lab has not; {nearest(absent, known)}"
            )
    levers: dict[str, dict[str, Any]] = own.pop("lever_settings", {})
    for extra in extras:
        key, _, value = extra.partition("=")
        lever, _, inner = key.partition(".")
        if inner and lever in ("selector", "curator"):
            levers.setdefault(lever, {})[inner] = _read(value)
        elif key in ("selector", "curator"):
            own[key] = value
        else:
            (own if key in known else settings)[key] = _read(value)
    if allocator == "vip":  # from one belief for all it would allocate nothing
        own.setdefault("prior", "gaussian_process")
    if allocator == "uniform" and settings:
        raise RollwiseError(
            f"methods: uniform has no {next(iter(settings))!r}; {nearest(next(iter(settings)), known)}"
        )
    try:
        for key, kind in KINDS.items():
            if key in own:
                own[key] = kind(own[key])
        return Arm(text.strip(), allocator, settings, lever_settings=levers, **own)
    except (TypeError, ValueError) as error:
        if isinstance(error, RollwiseError):
            raise
        raise RollwiseError(f"methods: {text!r} has a value of the wrong type ({error})") from None


def parse_arms(text: str) -> tuple[Arm, ...]:
    """Read arms joined by commas.

    Raises:
        RollwiseError: none, an arm given twice, or one that is not valid.
    """
    arms = tuple(parse_arm(part) for part in text.split(",") if part.strip())
    if not arms or len({arm.name for arm in arms}) < len(arms):
        raise RollwiseError(f"methods: {text!r}; give at least one, and none twice, such as uniform,min_variance")
    return arms


def _read(value: str) -> Any:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(value.lower(), value.replace("/", ","))
