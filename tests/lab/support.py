"""Settings small enough for tests."""

from __future__ import annotations

from rollwise.lab.training import Training
from rollwise.lab.warmup import Warmup

WARMUP = Warmup(task="sort", target=0.12, batch=96, pool_size=64)
TRAINING = Training(WARMUP, steps=4, prompts=6, rollouts=4, evaluate_every=2, save_every=2)
