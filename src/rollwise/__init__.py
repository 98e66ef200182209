"""rollwise spends a fixed rollout budget where it teaches the model most.

The names here need numpy and numba only. Trainers live in `rollwise.integrations`, the command line in `rollwise.cli`.
"""

from rollwise.allocators import Allocator, get_allocator
from rollwise.ledger import Ledger
from rollwise.solver import solve
from rollwise.step import Step, Wave
from rollwise.types import Outcome, Rollout, RollwiseError, StepRecord, StepView

__all__ = [
    "Allocator",
    "Ledger",
    "Outcome",
    "Rollout",
    "RollwiseError",
    "Step",
    "StepRecord",
    "StepView",
    "Wave",
    "get_allocator",
    "solve",
]
