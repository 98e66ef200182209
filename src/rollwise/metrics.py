"""Numbers that describe one step, the same for every method, so that runs compare."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from rollwise.advantages.base import Groups
from rollwise.types import FloatArray, IntArray, Outcome


def step_metrics(
    counts: IntArray,
    outcomes: Mapping[Outcome, IntArray],
    slots: IntArray,
    rewards: FloatArray,
    group_ids: Sequence[Hashable],
) -> dict[str, float]:
    """Metrics of a step of B prompts and n rollouts.

    Args:
        counts: (B,) rollouts paid for per prompt.
        outcomes: (B,) how many succeeded, failed and stayed unknown; `unknown_share` is the last's share of all.
        slots: (n,) prompt slot of each rollout.
        rewards: (n,) rewards, NaN where there is none.
        group_ids: (n,) which rollouts share a baseline.

    A group whose known rewards are all equal is dead: it carries no gradient. `dead_prompt_share` counts prompts without
    a live group (those with no rollout included), `informative_rollout_share` rollouts inside live groups; the two move in
    opposite directions under most adaptive rules. `reward_prompt_mean` is the mean over prompts of their mean reward, which
    does not fall merely because hard prompts got more rollouts; `reward_rollout_mean` is the plain mean. Both are biased
    where a rule stops on outcomes; a step's `reward_first_wave` is not (see `prompt_mean`).
    `alloc_entropy` is the entropy of counts / N over log B: 1 for uniform.
    """
    groups = Groups.of(rewards, group_ids)
    live = groups.mixed()[groups.index]
    live_prompts = np.bincount(slots, weights=live, minlength=len(counts)) > 0
    known = groups.known
    share = counts / max(1, counts.sum())
    entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum()
    return {
        "prompts": float(len(counts)),
        "rollouts": float(counts.sum()),
        "dead_prompt_share": 1.0 - float(live_prompts.mean()),
        "informative_rollout_share": float(live.mean()) if len(live) else 0.0,
        "unsolved_share": float((outcomes[Outcome.SUCCESS] == 0).mean()),
        "unknown_share": float(outcomes[Outcome.UNKNOWN].sum() / max(1, counts.sum())),
        "reward_prompt_mean": prompt_mean(slots, rewards, known),
        "reward_rollout_mean": float(rewards[known].mean()) if known.any() else 0.0,
        "alloc_entropy": float(entropy / np.log(len(counts))) if len(counts) > 1 else 1.0,
        "max_n": float(counts.max()),
        "min_n": float(counts.min()),
        "n0_share": float((counts == 0).mean()),
        "n1_share": float((counts == 1).mean()),
    }


def prompt_mean(slots: IntArray, rewards: FloatArray, rows: np.ndarray) -> float:
    """Mean over prompts of their mean known reward among `rows` (n,); 0 where nothing is known.

    Over the rollouts of a step's first wave, whose sizes no outcome has touched, this estimates the policy's mean reward
    without the bias of adaptive stopping.
    """
    counted = rows & ~np.isnan(rewards)
    sizes = np.bincount(slots[counted])
    sums = np.bincount(slots[counted], weights=rewards[counted])
    return float((sums[sizes > 0] / sizes[sizes > 0]).mean()) if counted.any() else 0.0
