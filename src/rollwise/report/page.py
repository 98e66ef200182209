"""The page of a report: figures, a table of arms, settings, and what the run can and cannot show."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import yaml

from rollwise.cli.run_state import NEVER_ENDED, never_ended
from rollwise.report import figures
from rollwise.report.run_data import ArmData, RunData

SETTINGS = (
    "model",
    "rewards",
    "outcome",
    "steps",
    "learning_rate",
    "max_completion_length",
    "temperature",
    "seed",
    "loss_type",
)


def render(run: RunData) -> str:
    """The HTML of a run's report; needs nothing beside itself."""
    loader = jinja2.PackageLoader("rollwise.report", "")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    group = int(run.config["rollouts_per_prompt"])
    adaptive = any(arm.adaptive and len(arm.n) for arm in run.arms)
    return environment.get_template("page.html.j2").render(
        name=run.config["name"],
        title=title(run),
        status=NEVER_ENDED if never_ended(run.path) else run.record["status"],
        error=run.record.get("error"),
        started=run.record.get("started", "")[:16].replace("T", " "),
        budget=f"{run.config['prompts_per_step']} × {group} = {run.config['prompts_per_step'] * group}",
        rows=[arm_row(arm, run) for arm in run.arms],
        before=evaluation_cells(run.record["arms"].get(run.arms[0].name, {}).get("before")),
        settings={key: shown(run.config.get(key)) for key in SETTINGS if run.config.get(key) is not None},
        versions=run.record.get("versions", {}),
        config=yaml.safe_dump(run.config, sort_keys=False),
        reward=figures.reward_figure(run.arms),
        signal=figures.signal_figure(run.arms),
        allocation=figures.allocation_figure(run.arms, group) if adaptive else "",
        colours=figures.colours(run.arms),
        several=len(run.arms) > 1,
        equal=len({spent(arm) for arm in run.arms}) == 1,
        seed=run.config["seed"],
    )


def title(run: RunData) -> str:
    """ "demo-20260101 · adaroll (min_variance) against uniform on embedded": run folder, methods, model."""
    adaptive = [f"{arm.method['allocator']} ({arm.method['utility']})" for arm in run.arms if arm.adaptive]
    even = [arm.method["allocator"] for arm in run.arms if not arm.adaptive]
    methods = " against ".join(", ".join(dict.fromkeys(part)) for part in (adaptive, even) if part)
    model = Path(str(run.config["model"])).name
    return f"{run.path.resolve().name} · {methods} on {model}"


def arm_row(arm: ArmData, run: RunData) -> dict[str, Any]:
    """What the table says of one arm."""
    method = arm.method
    weighting = method["weighting"].replace("_", " ")
    rule = f"{method['allocator']}, weighed {weighting}"
    if arm.adaptive:
        decisions = "sequential" if method["sequential"] else f"{method['waves']} waves"
        rule = f"{method['utility']}, {decisions}, n ≥ {method['n_min']}, weighed {weighting}"
    seconds = arm.result.get("seconds") or arm.metrics[-1].get("seconds")
    return {
        "name": arm.name,
        "rule": rule,
        "spent": f"{spent(arm):,}" + (f" + {lost:,} lost" if (lost := arm.result.get("rollouts_lost")) else ""),
        "seconds": f"{seconds:.0f}" if seconds is not None else "–",
        "dead": percent(arm.series("dead_prompt_share")[1]),
        "informative": percent(arm.series("informative_rollout_share")[1]),
        "largest": f"{int(arm.n.max())}" if len(arm.n) else "–",
        **evaluation_cells(arm.result.get("after")),
    }


def spent(arm: ArmData) -> int:
    """Rollouts the arm spent, or had spent when its last line was written."""
    return int(arm.result.get("rollouts_spent") or arm.metrics[-1].get("rollwise/rollouts_spent", 0))


def evaluation_cells(evaluation: dict[str, Any] | None) -> dict[str, str]:
    """Greedy and sampled accuracy and their standard errors (over prompts), a dash where not measured."""
    cells = {}
    for kind in ("greedy", "sampled"):
        value = (evaluation or {}).get(kind)
        cells[kind], cells[f"{kind}_error"] = "–", ""
        if evaluation is not None and value is not None and not math.isnan(value):
            cells[kind] = f"{value:.3f}"
            if 0 <= value <= 1:
                cells[f"{kind}_error"] = f"± {math.sqrt(value * (1 - value) / evaluation['prompts']):.3f}"
    return cells


def percent(values: np.ndarray) -> str:
    """Mean of a share over the run, a dash where it was not logged."""
    return f"{values.mean():.0%}" if len(values) else "–"


def shown(value: Any) -> str:
    """A setting as one line of text."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
