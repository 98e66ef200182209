"""The flags of `rollwise evaluate`, and its result as lines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from rollwise.cli.output import AsJson, show
from rollwise.cli.values import short
from rollwise.types import RollwiseError


def evaluate(
    model: Annotated[
        str, typer.Option(help="Folder, hub id, GGUF file or 'embedded'; with --endpoint its name there.")
    ],
    data: Annotated[
        str, typer.Option(help="gsm8k, math500, aime24, reasoning_gym/NAME, a file, a hub id, or a .yaml with data:.")
    ],
    endpoint: Annotated[
        str | None, typer.Option(help="OpenAI-compatible address, http://host:port/v1; key in OPENAI_API_KEY.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Default test.")] = None,
    limit: Annotated[int | None, typer.Option(help="Rows to take.")] = None,
    verifier: Annotated[
        str | None, typer.Option(help="numeric, math_verify, multiple_choice, ... or module:function.")
    ] = None,
    greedy: Annotated[bool, typer.Option("--greedy/--no-greedy", help="One greedy completion per prompt.")] = True,
    samples: Annotated[int, typer.Option(help="Sampled completions per prompt.")] = 0,
    k: Annotated[str | None, typer.Option(help="Of pass@k and maj@k, such as 1,8; default powers of two.")] = None,
    temperature: Annotated[float, typer.Option(help="Of the samples.")] = 0.6,
    top_p: Annotated[float, typer.Option(help="Of the samples.")] = 0.95,
    max_tokens: Annotated[int, typer.Option(help="Tokens per completion at most.")] = 512,
    batch: Annotated[int, typer.Option(help="Completions generated at a time.")] = 16,
    seed: Annotated[int, typer.Option(help="Seed of the samples and intervals.")] = 0,
    chat: Annotated[
        bool | None, typer.Option("--chat/--base", help="Chat or base prompts; default by the model's tokenizer.")
    ] = None,
    by: Annotated[list[str] | None, typer.Option(help="Column to break the scores down by; several times.")] = None,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    gguf_file: Annotated[str | None, typer.Option(help="The file to take of a folder with several.")] = None,
    concurrency: Annotated[int, typer.Option(help="Requests to the endpoint at a time.")] = 16,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=86_400.0, help="Seconds a request may take before it is sent again."),
    ] = 600.0,
    out: Annotated[
        Path | None, typer.Option(help="Folder; goes on where it was. Default below runs/evaluate.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Greedy accuracy, avg@k, pass@k and maj@k of a model, with intervals; goes on after a kill."""
    import os

    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from rollwise.cli import evaluate as command
    from rollwise.cli.evaluate_inputs import read_data, wants_chat

    spec = read_data(data, split, limit, chat)
    if chat is None and not data.endswith((".yaml", ".yml")):
        spec = spec.model_copy(update={"chat": wants_chat(model, endpoint, gguf_file)})
    settings = {
        "model": model,
        "endpoint": endpoint,
        "gguf_file": gguf_file,
        "dtype": dtype,
        "data": spec,
        "verifier": verifier,
        "greedy": greedy,
        "samples": samples,
        "temperature": temperature,
        "top_p": top_p,
        "max_tokens": max_tokens,
        "batch": batch,
        "seed": seed,
    }
    results = command.evaluate(
        settings,
        ks=read_ks(k),
        by=by or (),
        out=out,
        concurrency=concurrency,
        timeout=timeout,
        progress=not as_json,
    )
    show(lines(results), results, as_json)


def read_ks(given: str | None) -> list[int] | None:
    """The numbers of "1,8"; None for nothing."""
    if given is None:
        return None
    try:
        return [int(part) for part in given.split(",")]
    except ValueError:
        raise RollwiseError(f"--k: {given!r} is no list of numbers; write 1,8") from None


def lines(results: dict[str, Any]) -> list[str]:
    """The scores as a table of at most 80 columns, then the groups and what went wrong."""
    shown = [
        f"{results['model']} on {results['data']} ({results['split']}), {results['prompts']} prompts, "
        f"judged by {results['verifier']}",
        f"{'score':10}  {'value':>6}  95 % interval      prompts",
    ]
    for name, score in results["scores"].items():
        bounds = f"{share(score['low'])} to {share(score['high'])}"
        shown.append(f"{name:10}  {share(score['value'])}  {bounds:17}  {score['prompts']:7d}")
    for column, values in results["groups"].items():
        names = list(results["scores"])[:4]
        shown += ["", f"by {column:21}" + "".join(f"{name:>10}" for name in names) + "   prompts"]
        for value, scores in values.items():
            cells = "".join(f"{share(scores[name]['value']):>10}" for name in names)
            shown.append(f"{value[:24]:24}{cells}{scores[names[0]]['prompts']:10d}")
    for kind, course in results["completions"].items():
        if course is not None:
            shown += [
                "",
                f"{kind}: {course['count']} completions of {course['tokens']:.0f} tokens; cut off {course['cut_off']:.1%}, "
                f"no answer {course['no_answer']:.1%}, unknown {course['unknown']:.1%}",
                *(
                    f"unknown: {short(reason)} ({n} of {course['count']})"
                    for reason, n in course["unknown_for"].items()
                ),
            ]
    return [*shown, "", f"folder: {results['folder']} (results.json, completions.parquet)"]


def share(value: float) -> str:
    """A share in per cent, right-aligned to six characters."""
    return "     -" if value is None or math.isnan(value) else f"{100 * value:5.1f}%"
