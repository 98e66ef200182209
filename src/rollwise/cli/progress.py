"""What `rollwise train` shows while it runs: bars on a terminal, plain lines elsewhere, always on standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class TrainingProgress:
    """One bar an arm, or about ten plain lines an arm when standard error is no terminal."""

    def __init__(self, arms: Sequence[str], steps: int, budget: int, console: Console | None = None) -> None:
        """`budget` is N, rollouts per step."""
        self.console = console or Console(stderr=True, highlight=False)
        self._steps = steps
        self._total = steps * budget
        self._width = max(map(len, arms))
        self._every = max(1, steps // 10)
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        if self.console.is_terminal:
            columns = (
                TextColumn(f"{{task.description:<{self._width}}}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
            )
            self._bars = Progress(*columns, console=self.console)
            self._tasks = {arm: self._bars.add_task(arm, total=steps, note="starting") for arm in arms}

    def __enter__(self) -> TrainingProgress:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars:
            self._bars.stop()

    def say(self, line: str) -> None:
        """One line of text, above the bars where there are bars."""
        self.console.print(line, markup=False, soft_wrap=True)

    def step(self, arm: str, event: Mapping[str, Any]) -> None:
        """Show one step of an arm."""
        at = int(event["step"])
        if self._bars:
            self._bars.update(self._tasks[arm], completed=at, note=describe(event))
        elif at % self._every == 0 or at in (1, self._steps):
            spent = int(event.get("rollwise/rollouts_spent", 0))
            self.say(
                f"{arm:<{self._width}}  step {at}/{self._steps}  rollouts {spent}/{self._total}  "
                f"{describe(event)}  {event['seconds']:.0f} s"
            )


def describe(event: Mapping[str, Any]) -> str:
    """Reward, dead and informative shares and largest group of one step, those that were measured."""
    reward = event.get("rollwise/reward_first_wave", event.get("reward"))
    parts = [f"reward {reward:.3f}"] if reward is not None else []
    for key, label, form in (
        ("rollwise/dead_prompt_share", "dead", ".0%"),
        ("rollwise/informative_rollout_share", "informative", ".0%"),
        ("rollwise/max_n", "largest n", ".0f"),
    ):
        if event.get(key) is not None:
            parts.append(f"{label} {event[key]:{form}}")
    return "  ".join(parts)
