"""The flags of `rollwise train`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rollwise.cli.output import AsJson, show
from rollwise.suggest import nearest
from rollwise.types import RollwiseError

OPEN = {"allow_extra_args": True, "ignore_unknown_options": True}
"""The file's name and `--any.setting value` are read by `read_rest`, not by typer."""


def train(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", help="YAML file; without one, the demo.")] = None,
    model: Annotated[str | None, typer.Option(help="Folder, hub id, GGUF file, or 'embedded'.")] = None,
    data: Annotated[str | None, typer.Option(help="Source of the training rows (data.source).")] = None,
    reward: Annotated[list[str] | None, typer.Option(help="Reward function; may be given several times.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Function that says success, failure or unknown.")] = None,
    allocator: Annotated[str | None, typer.Option(help="adaroll, uniform or observe.")] = None,
    utility: Annotated[str | None, typer.Option(help="What adaroll maximises.")] = None,
    waves: Annotated[int | None, typer.Option(help="Decisions per step.")] = None,
    weighting: Annotated[str | None, typer.Option(help="per_rollout or per_prompt.")] = None,
    prior: Annotated[str | None, typer.Option(help="A Beta a,b; empirical; carried; or gaussian_process.")] = None,
    objective: Annotated[
        str | None, typer.Option(help="none, mean, log, pass@k (such as pass@4) or module:function.")
    ] = None,
    compare_uniform: Annotated[
        bool | None, typer.Option("--compare-uniform/--no-compare-uniform", help="Also train with uniform allocation.")
    ] = None,
    prompts_per_step: Annotated[int | None, typer.Option(help="B.")] = None,
    rollouts_per_prompt: Annotated[int | None, typer.Option(help="G; N = B x G rollouts a step.")] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    max_completion_length: Annotated[int | None, typer.Option(help="Tokens per completion at most.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every arm.")] = None,
    output: Annotated[str | None, typer.Option(help="Run folder; default runs/<name>-<date>-<time>.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting: key.path=value, e.g. trainer.beta=0.01.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Run folder of a run that was stopped: go on from its checkpoints.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, say what would run, write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train with a fixed rollout budget per step; without arguments, the demo: adaptive against uniform.

    The file may also stand alone, and a setting of a part be a flag: rollwise train run.yaml --method.selector cero
    """
    from rollwise.cli.config import read_config
    from rollwise.cli.result import result_lines
    from rollwise.cli.train import plan
    from rollwise.cli.train import resume as go_on
    from rollwise.cli.train import train as run_training

    flags: dict[str, Any] = {
        "model": model,
        "data.source": data,
        "rewards": reward or None,
        "outcome": outcome,
        "method.allocator": allocator,
        "method.utility": utility,
        "method.waves": waves,
        "method.weighting": weighting,
        "method.prior": prior,
        "method.objective": objective,
        "compare_uniform": compare_uniform,
        "prompts_per_step": prompts_per_step,
        "rollouts_per_prompt": rollouts_per_prompt,
        "steps": steps,
        "learning_rate": learning_rate,
        "max_completion_length": max_completion_length,
        "temperature": temperature,
        "seed": seed,
        "output": output,
    }
    given = {key: value for key, value in flags.items() if value is not None}
    if resume is not None:
        if given or config is not None or context.args or settings or dry_run:
            raise RollwiseError(f"--resume {resume}: a run goes on with its own settings; give no others")
        result = go_on(resume)
        show(result_lines(result), result, as_json)
        return
    known = [name for option in context.command.params for name in option.opts]
    file, dotted = read_rest(context.args, known)
    if file is not None and config is not None:
        raise RollwiseError(f"--config {config}: the run's file is given twice, also as {file}; keep one")
    resolved = read_config(config or file, given | dotted | parse_settings(settings or []))
    if dry_run:
        lines = plan(resolved)
        show(lines, {"dry_run": True, "config": resolved.model_dump(mode="json")}, as_json)
        return
    result = run_training(resolved)
    show(result_lines(result), result, as_json)


def read_rest(rest: Sequence[str], known: Sequence[str]) -> tuple[Path | None, dict[str, Any]]:
    """The run's file and the settings among arguments that are none of the `known` options.

    Raises:
        RollwiseError: an option that does not exist or lacks its value, or a second file.
    """
    from rollwise.cli.config import RunConfig

    file: Path | None = None
    settings: list[str] = []
    waiting = list(rest)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("-"):
            if file is not None:
                raise RollwiseError(f"{word}: a run has one file, and {file} is given already")
            file = Path(word)
        elif not word.startswith("--") or ("." not in name and name not in RunConfig.model_fields):
            raise RollwiseError(f"no option {word.partition('=')[0]}; {nearest(word, known)}, or --part.setting value")
        elif not equals and not waiting:
            raise RollwiseError(f"{word}: give a value, such as {word} 4")
        else:
            settings.append(f"{name}={value if equals else waiting.pop(0)}")
    return file, parse_settings(settings)


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """`key.path=value` pairs, values read as YAML."""
    from rollwise.cli.yaml_input import load_yaml

    found: dict[str, Any] = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or not key:
            raise RollwiseError(f"--set {setting!r}: write key=value, such as trainer.beta=0.01")
        found[key] = load_yaml(value, f"--set {key}")
    return found
