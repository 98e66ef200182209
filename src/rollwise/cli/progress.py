"""What `rollwise train` shows while it runs: bars on a terminal, plain lines elsewhere, always on standard error."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

MEASURES = (
    ("reward", "reward"),
    ("dead prompts", "dead\nprompts"),
    ("informative rollouts", "informative\nrollouts"),
    ("largest n", "largest\nn"),
)
"""What is shown of a step: in a line of text, and as the head of a column."""


class TrainingProgress:
    """One bar an arm, or about ten plain lines an arm when standard error is no terminal."""

    def __init__(
        self,
        arms: Sequence[str],
        steps: int,
        budget: int,
        open_ended: Collection[str] = (),
        console: Console | None = None,
    ) -> None:
        """`budget` is N, rollouts per step; arms that are `open_ended` may spend more, and are shown without a total."""
        self.console = console or Console(stderr=True, highlight=False)
        self._steps = steps
        self._total = steps * budget
        self._open_ended = open_ended
        self._width = max(map(len, arms))
        self._every = max(1, steps // 10)
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        if self.console.is_terminal:
            columns = (
                TextColumn("{task.description}", table_column=Column("arm", no_wrap=True)),
                BarColumn(bar_width=None, table_column=Column("", ratio=1)),
                MofNCompleteColumn(table_column=Column("step", justify="right", no_wrap=True)),
                *(
                    TextColumn(
                        f"{{task.fields[measures][{k}]}}",
                        justify="right",
                        table_column=Column(head, justify="right", no_wrap=True),
                    )
                    for k, (_, head) in enumerate(MEASURES)
                ),
                TimeElapsedColumn(table_column=Column("time", justify="right", no_wrap=True)),
            )
            self._bars = HeadedProgress(*columns, console=self.console, expand=True)
            empty = [""] * len(MEASURES)
            self._tasks = {arm: self._bars.add_task(arm, total=steps, measures=empty) for arm in arms}

    def __enter__(self) -> TrainingProgress:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars:
            self._bars.stop()

    def say(self, line: str) -> None:
        """One line of text, above the bars where there are bars; a terminal breaks it between words."""
        self.console.print(line, markup=False, soft_wrap=not self.console.is_terminal)

    def step(self, arm: str, event: Mapping[str, Any]) -> None:
        """Show one step of an arm."""
        at = int(event["step"])
        if self._bars:
            self._bars.update(self._tasks[arm], completed=at, measures=measures(event))
        elif at % self._every == 0 or at in (1, self._steps):
            spent = int(event.get("rollwise/rollouts_spent", 0))
            total = " " * (len(str(self._total)) + 1) if arm in self._open_ended else f"/{self._total}"
            self.say(
                f"{arm:<{self._width}}  step {at:>{len(str(self._steps))}}/{self._steps}  "
                f"rollouts {spent:>{len(str(self._total))}}{total}  "
                f"{describe(event)}  {event['seconds']:.0f} s"
            )


def describe(event: Mapping[str, Any]) -> str:
    """Reward, dead and informative shares and largest group of one step, those that were measured, in equal widths."""
    return "  ".join(f"{label} {value}" for (label, _), value in zip(MEASURES, measures(event), strict=True) if value)


def measures(event: Mapping[str, Any]) -> list[str]:
    """The text of each of `MEASURES`, empty for those that were not measured."""
    given = {**event, "reward": event.get("rollwise/reward_first_wave", event.get("reward"))}
    return [
        "" if given.get(key) is None else f"{given[key]:{form}}"
        for key, form in (
            ("reward", ".3f"),
            ("rollwise/dead_prompt_share", "4.0%"),
            ("rollwise/informative_rollout_share", "4.0%"),
            ("rollwise/max_n", "3.0f"),
        )
    ]


class HeadedProgress(Progress):
    """Bars under a line that says what the columns are, so that they fit in 80 columns."""

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """The bars as a table with its header shown."""
        table = super().make_tasks_table(tasks)
        table.show_header = True
        return table
