"""The published methods, each as a choice on the four levers, an objective and options of the trainer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Settings = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """One method.

    `curators` are applied in order; the `*_settings` are keyword arguments of the levers, `curator_settings` by curator
    name. `step` holds settings of `rollwise.step.Step` and of the prior that differ from the defaults; `trainer` options
    of TRL's `GRPOConfig` as published, losses and clipping only. `carries` says what lives between steps, `source` where
    the method comes from.
    """

    name: str
    title: str
    source: str
    family: str
    allocator: str = "uniform"
    allocator_settings: Settings = field(default_factory=dict)
    selector: str | None = None
    selector_settings: Settings = field(default_factory=dict)
    curators: tuple[str, ...] = ()
    curator_settings: dict[str, Settings] = field(default_factory=dict)
    advantage: str = "grpo"
    step: Settings = field(default_factory=dict)
    trainer: Settings = field(default_factory=dict)
    carries: str = "nothing"


FAMILIES = {
    "baseline": "the same number of rollouts for every prompt",
    "estimation": "favours success rates near one half, where rewards vary most",
    "discovery": "favours low success rates, where a first success is found",
    "selection": "chooses which prompts enter a step",
    "curation": "chooses which rollouts train, or what they weigh",
    "advantage": "computes advantages otherwise",
}
GRPO_LOSS: Settings = {"loss_type": "grpo", "scale_rewards": "group"}
CLIP_HIGHER: Settings = {"loss_type": "dapo", "scale_rewards": "group", "epsilon": 0.2, "epsilon_high": 0.28}


PRESETS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("grpo", "Group relative policy optimisation", "arXiv 2402.03300", "baseline", trainer=GRPO_LOSS),
        Method(
            "dr_grpo",
            "GRPO done right: no division by deviation or length",
            "arXiv 2503.20783",
            "baseline",
            advantage="dr_grpo",
            trainer={"loss_type": "dr_grpo", "scale_rewards": "none"},
        ),
        Method(
            "gspo",
            "Group sequence policy optimisation",
            "arXiv 2507.18071",
            "baseline",
            trainer=GRPO_LOSS
            | {"importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4, "beta": 0.0},
        ),
        Method(
            "tic_grpo",
            "Trajectory-level importance-corrected GRPO (experimental)",
            "arXiv 2508.02833",
            "baseline",
            # epsilon 1 clips nothing below; delta is the bound above where advantages are negative
            trainer=GRPO_LOSS
            | {
                "importance_sampling_level": "trajectory",
                "epsilon": 1.0,
                "epsilon_high": 0.2,
                "delta": 1.2,
                "beta": 0.0,
            },
        ),
        Method("rloo", "Leave-one-out baseline", "arXiv 2402.14740", "advantage", advantage="rloo", trainer=GRPO_LOSS),
        Method(
            "mc_grpo", "Median-centred GRPO", "arXiv 2601.22582", "advantage", advantage="mc_grpo", trainer=GRPO_LOSS
        ),
        Method(
            "krpo", "Kalman-filtered baseline", "arXiv 2505.07527", "advantage", advantage="krpo", trainer=GRPO_LOSS
        ),
        Method(
            "ms_grpo",
            "Multi-scale GRPO",
            "OpenReview ktHj6YazEE (withdrawn)",
            "advantage",
            advantage="ms_grpo",
            trainer=GRPO_LOSS,
        ),
        Method(
            "adaroll",
            "AdaRoll-GRPO: Bayes-adaptive allocation",
            "arXiv 2610.37429",
            "estimation",
            allocator="adaroll",
            allocator_settings={"utility": "min_variance"},
        ),
        Method(
            "neyman",
            "Neyman allocation of an objective's gradient, under beliefs",
            "rollwise",
            "estimation",
            allocator="neyman",
            advantage="dr_grpo",
            step={"prior": "carried", "objective": "mean"},
            trainer={"loss_type": "dr_grpo", "scale_rewards": "none"},
            carries="beliefs",
        ),
        Method(
            "vip",
            "Variance-informed predictive allocation, predicted from prompts that read alike",
            "arXiv 2602.01601",
            "estimation",
            allocator="vip",
            advantage="rloo",
            step={"prior": "gaussian_process"},
            carries="the latest rates of up to 2,000 prompts",
        ),
        Method(
            "vip_dr_grpo",
            "VIP in its Dr.GRPO form",
            "arXiv 2602.01601",
            "estimation",
            allocator="vip",
            allocator_settings={"form": "dr_grpo"},
            advantage="dr_grpo",
            step={"prior": "gaussian_process"},
            trainer={"loss_type": "dr_grpo", "scale_rewards": "none"},
            carries="the latest rates of up to 2,000 prompts",
        ),
        Method(
            "vip_beta",
            "VIP with a carried Beta per prompt in place of its predictor",
            "after arXiv 2602.01601",
            "estimation",
            allocator="vip",
            advantage="rloo",
            step={"prior": "carried"},
            carries="beliefs",
        ),
        Method(
            "vip_beta_dr_grpo",
            "The same in VIP's Dr.GRPO form",
            "after arXiv 2602.01601",
            "estimation",
            allocator="vip",
            allocator_settings={"form": "dr_grpo"},
            advantage="dr_grpo",
            step={"prior": "carried"},
            trainer={"loss_type": "dr_grpo", "scale_rewards": "none"},
            carries="beliefs",
        ),
        Method("hora", "Hit-utility optimal rollout allocation", "arXiv 2605.07114", "discovery", allocator="hora"),
        Method(
            "hora_mass_aware",
            "HORA counting the whole group's first hit",
            "rollwise, after arXiv 2605.07114",
            "discovery",
            allocator="hora",
            allocator_settings={"mass_aware": True},
        ),
        Method(
            "knapsack",
            "Knapsack RL: exact allocation by the last visit's rates",
            "arXiv 2509.25849",
            "discovery",
            allocator="knapsack",
            step={"prior": "carried"},
            carries="beliefs",
        ),
        Method("gvm", "GVM by gradient norms of a first stage", "arXiv 2505.02391", "discovery", allocator="gvm"),
        Method(
            "gvm_equal", "GVM with equal gradient norms", "after arXiv 2505.02391", "discovery", allocator="gvm_equal"
        ),
        Method(
            "dars",
            "Difficulty-adaptive multi-stage rollouts, equal treatment",
            "arXiv 2508.13755",
            "discovery",
            "dars",
        ),
        Method(
            "dars_hw",
            "DARS weighted towards hard prompts",
            "arXiv 2508.13755",
            "discovery",
            allocator="dars",
            allocator_settings={"form": "hw"},
        ),
        Method(
            "aero",
            "Adaptive efficient rollout optimisation",
            "arXiv 2602.14338",
            "discovery",
            allocator="aero",
            curators=("aero",),
            advantage="bayesian",
        ),
        Method(
            "ar3po",
            "Adaptive rollout and response reuse",
            "arXiv 2509.25808",
            "discovery",
            allocator="ar3po",
            curators=("reuse",),
            carries="one correct rollout per prompt",
        ),
        Method(
            "reinforce_ada",
            "Reinforce-Ada, balanced stop",
            "arXiv 2510.04996",
            "discovery",
            allocator="reinforce_ada",
            curators=("balanced",),
            advantage="global_baseline",
        ),
        Method(
            "reinforce_ada_positive",
            "Reinforce-Ada, stop at the first success",
            "arXiv 2510.04996",
            "discovery",
            allocator="reinforce_ada",
            allocator_settings={"stop": "positive"},
            curators=("balanced",),
            advantage="global_baseline",
        ),
        Method(
            "optpo",
            "Test-time policy optimisation by a sequential vote, without labels",
            "arXiv 2512.02882",
            "discovery",
            allocator="optpo",
            step={"labels": "majority"},
        ),
        Method(
            "cero",
            "Cross-epoch adaptive rollout optimisation",
            "arXiv 2606.05606",
            "selection",
            selector="cero",
            trainer=CLIP_HIGHER | {"beta": 0.0},
            carries="beliefs, prices of prompts and budget",
        ),
        Method(
            "mopps",
            "Model predictive prompt selection",
            "arXiv 2507.04632",
            "selection",
            selector="mopps",
            carries="beliefs",
        ),
        Method(
            "greso",
            "GRPO with efficient selective rollout",
            "arXiv 2506.02177",
            "selection",
            selector="greso",
            curators=("dynamic",),
            curator_settings={"dynamic": {"live_by": "outcome"}},
            trainer=CLIP_HIGHER | {"beta": 0.0},
            carries="dead visits in a row per prompt; rollouts that wait",
        ),
        Method(
            "codapo",
            "Confidence and difficulty adaptive policy optimisation",
            "arXiv 2606.07950",
            "selection",
            selector="resampling",
            curators=("codapo",),
            trainer={"loss_type": "bnpo", "scale_rewards": "group", "beta": 0.0},
            carries="the prompts to repeat",
        ),
        Method(
            "dapo",
            "Decoupled clip and dynamic sampling, at its real cost",
            "arXiv 2503.14476",
            "selection",
            curators=("dynamic",),
            curator_settings={"dynamic": {"live_by": "outcome"}},
            trainer=CLIP_HIGHER | {"beta": 0.0},
            carries="rollouts that wait for a full batch",
        ),
        Method(
            "dapo_capped",
            "DAPO with dead groups left out, one step's budget per update",
            "after arXiv 2503.14476",
            "selection",
            curators=("live",),
            curator_settings={"live": {"live_by": "outcome"}},
            trainer=CLIP_HIGHER | {"beta": 0.0},
        ),
        Method(
            "replay",
            "Rollout-level advantage-prioritised replay",
            "arXiv 2606.04560",
            "curation",
            curators=("replay",),
            trainer=CLIP_HIGHER | {"beta": 0.0},
            carries="rollouts of the last 10 updates",
        ),
        Method(
            "pods",
            "Policy optimisation with down-sampling",
            "arXiv 2504.13818",
            "curation",
            curators=("pods",),
            trainer=GRPO_LOSS,
        ),
    )
}
