"""Accuracy and length in one number, the score that compares replay with its baseline."""

from __future__ import annotations

from rollwise.types import RollwiseError


def efficiency_score(
    accuracy: float,
    tokens: float,
    base_accuracy: float,
    base_tokens: float,
    constants: tuple[float, float, float] = (1.0, 3.0, 5.0),
) -> float:
    """AES of a model against a base (O1-Pruner, arXiv 2501.12570): shorter and more accurate is more, loss counts most.

        a dLen + b dAcc where dAcc >= 0, else a dLen + c dAcc;  dLen = 1 - L / L_base,  dAcc = Acc / Acc_base - 1

    Args:
        tokens, base_tokens: mean length of a response.
        constants: (a, b, c); other papers use (1, 5, 10).

    Raises:
        RollwiseError: a base that is not positive.
    """
    if not (base_accuracy > 0 and base_tokens > 0):
        raise RollwiseError(
            f"efficiency: base accuracy {base_accuracy} and tokens {base_tokens}; both must be above 0"
        )
    a, b, c = constants
    shorter = (base_tokens - tokens) / base_tokens
    better = (accuracy - base_accuracy) / base_accuracy
    return a * shorter + (b if better >= 0 else c) * better
