"""Mathematics of allocation: numpy in, numpy out."""

from rollwise.solver.exact import solve
from rollwise.solver.solution import Solution
from rollwise.solver.tables import cached_solve, load_table, save_table

__all__ = ["Solution", "cached_solve", "load_table", "save_table", "solve"]
