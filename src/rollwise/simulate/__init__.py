"""Prompts as coins: every rule on the same prompts at the same number of rollouts, in seconds and without a model."""

from __future__ import annotations

from rollwise.simulate.environment import Environment, Played, play
from rollwise.simulate.imperfections import Imperfections
from rollwise.simulate.pools import BetaPool, parse_pool
from rollwise.simulate.recorded import RecordedLog, read_log

__all__ = ["BetaPool", "Environment", "Imperfections", "Played", "RecordedLog", "parse_pool", "play", "read_log"]
