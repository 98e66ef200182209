"""Run by `make wheel` in an environment that holds the wheel, numpy and numba only: the core needs nothing else."""

import importlib.util
import os
import sys

for absent in ("torch", "transformers", "trl", "typer", "pydantic", "pandas", "matplotlib"):
    assert importlib.util.find_spec(absent) is None, f"{absent} is installed: this is no bare environment"

import rollwise  # noqa: E402
import rollwise.advantages  # noqa: E402
import rollwise.allocators  # noqa: E402
import rollwise.testing  # noqa: E402
from rollwise.solver import solve  # noqa: E402

assert os.path.join("build", "bare") in rollwise.__file__, rollwise.__file__
solution = solve("min_variance", prompts=2, budget=4)
assert abs(solution.value - 1 / 36) < 1e-12, solution.value
assert "torch" not in sys.modules
print(f"core from the wheel: min_variance, 2 prompts, 4 rollouts: {solution.value:.6f}")
