"""Mathematics of allocation: numpy in, numpy out."""

from rollwise.solver.exact import solve
from rollwise.solver.solution import Solution

__all__ = ["Solution", "solve"]
