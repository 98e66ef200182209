"""What is measured of a played step, the same for every method."""

from __future__ import annotations

import numpy as np

from rollwise.simulate.environment import Played
from rollwise.types import UNLIMITED
from rollwise.utilities import UTILITIES, get_utility

SHARES = ("dead_prompt_share", "informative_rollout_share", "unsolved_share")
_PUBLISHED = {name: get_utility(name) for name in UTILITIES}


def measure(played: Played) -> dict[str, float]:
    """Metrics of the record (`rollwise.metrics`), and what only a simulator knows.

    effective_rollout_share     rollouts with an advantage that is not 0, of those paid for
    ideal_informative           sum_i 1 - p_i^n_i - (1-p_i)^n_i, with the true p
    <utility>                   value of the final counts of known outcomes, for each published utility (raw form)
    rollouts_generated, rollouts_trained_on, tokens_generated     cost
    wrong_verdict_share         known verdicts that are not the truth
    clock                       simulated time, in median durations of a rollout
    late                        rollouts that came back after the next decision
    """
    record, n, p = played.record, played.record.counts, played.rates
    trained = int(np.count_nonzero(record.advantages)) + len(record.stored)
    known = [row.outcome.value for row in record.rollouts]
    verdicts = np.array([{"success": 1.0, "failure": 0.0}.get(word, np.nan) for word in known])
    judged = ~np.isnan(verdicts)
    found = dict(record.metrics)
    found |= {
        "effective_rollout_share": trained / max(1, int(n.sum())),
        "ideal_informative": float((1 - p**n - (1 - p) ** n).sum()),
        "rollouts_generated": float(n.sum()),
        "rollouts_trained_on": float(trained),
        "tokens_generated": played.tokens,
        "wrong_verdict_share": float((verdicts[judged] != played.success[judged]).mean()) if judged.any() else 0.0,
        "clock": played.clock,
        "late": float(played.late),
    }
    return found | {name: rule.value(record.successes, record.failures) for name, rule in _PUBLISHED.items()}


def cap_of(n_max: int | None, budget: int) -> int:
    """Most rollouts one prompt can end with."""
    return min(budget, UNLIMITED if n_max is None else n_max)
