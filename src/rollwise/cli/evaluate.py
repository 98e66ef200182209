"""`rollwise evaluate`: greedy accuracy, avg@k, pass@k and maj@k of a model on a data set.

Completions are generated in batches that are the same in every run; while one is generated the last one is verified in
the processes of the verifier pool. Each is written once it is judged, so a killed evaluation goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rollwise.cli.config import read_yaml
from rollwise.cli.evaluate_loop import EvaluateConfig, generate, plan_batches
from rollwise.cli.evaluate_results import summarise
from rollwise.cli.evaluate_store import EvaluationStore
from rollwise.cli.faults import explain
from rollwise.cli.switches import refuse_switches
from rollwise.tasks.catalogue import CATALOGUE
from rollwise.tasks.datasets import DataSpec, load_rows
from rollwise.tasks.endpoint import Endpoint
from rollwise.tasks.generation import Generator, LocalModel
from rollwise.tasks.verifiers import Verifier, resolve_verifier
from rollwise.types import RollwiseError


def read_data(data: str, split: str | None, limit: int | None, chat: bool | None) -> DataSpec:
    """The data to evaluate on: a name of the catalogue, a file, a hub id, or a .yaml file with a `data:` part.

    Raises:
        RollwiseError: settings that do not fit.
    """
    given: dict[str, Any] = {"source": data}
    if data.endswith((".yaml", ".yml")):
        given = read_yaml(Path(data))
        given = dict(given.get("eval_data") or given.get("data") or given)
    given.setdefault("split", "test" if data in CATALOGUE or given.get("source") == data else "train")
    given |= {key: value for key, value in {"split": split, "limit": limit, "chat": chat}.items() if value is not None}
    refuse_switches(given, DataSpec, "data.")
    try:
        return DataSpec.model_validate(given)
    except ValidationError as error:
        raise RollwiseError(f"--data {explain(error, DataSpec)}") from None


def evaluate(
    settings: Mapping[str, Any],
    *,
    ks: Sequence[int] | None = None,
    by: Sequence[str] = (),
    out: Path | None = None,
    concurrency: int = 16,
    timeout: float = 600.0,
    progress: bool = True,
) -> dict[str, Any]:
    """Run or go on with an evaluation; returns the results, which `results.json` in its folder holds too.

    Args:
        settings: fields of `EvaluateConfig`; `chat: None` in `data` asks the model's tokenizer.
        ks: of pass@k and maj@k; default the powers of two up to `samples`, and that itself.
        by: columns to break the scores down by, besides those of a named data set.
        out: the folder; default below runs/evaluate, from the settings, so that the same command goes on.
        concurrency: requests to an endpoint at a time.
        timeout: seconds an endpoint may be silent before it is asked again.

    Raises:
        RollwiseError: naming the setting that does not fit.
    """
    config = validate(settings)
    if not config.greedy and not config.samples:
        raise RollwiseError("--samples: nothing to do with --no-greedy and no samples; give --samples 8")
    chosen = sorted(set(ks)) if ks else default_ks(config.samples)
    if any(k < 1 or k > config.samples for k in chosen):
        raise RollwiseError(f"--k: {chosen[-1]} does not fit {config.samples} samples; give 1 to {config.samples}")
    verifier = resolve_verifier(config.verifier)
    rows = load_rows(config.data)
    columns = group_columns(config, by, rows.column_names)
    check_columns(verifier, rows.column_names)
    began = time.monotonic()
    fingerprint = {"rows": len(rows), "digest": digest_of(rows)}
    stated = config.model_dump(mode="json")
    store = EvaluationStore(out or default_folder(config, stated | fingerprint), stated | fingerprint)
    plan = list(plan_batches(config, [len(str(prompt)) for prompt in rows["prompt"]]))
    left = [batch for batch in plan if any(item.key not in store.done for item in batch)]
    found = len(store.done)
    if left:
        generator = make_generator(config, concurrency, timeout)
        try:
            generate(generator, config, verifier, rows, left, store, progress)
        finally:
            if isinstance(generator, Endpoint):
                generator.close()
    groups = {name: rows[name][:] for name in columns}
    results = {
        "model": config.model,
        "data": config.data.source,
        "split": config.data.split,
        "verifier": verifier.name,
        "prompts": len(rows),
        **summarise(store.in_order(), groups, len(rows), chosen, config.seed),
        "seconds": round(time.monotonic() - began, 1),
        "found": found,
        "folder": str(store.folder),
        "settings": stated,
    }
    from rollwise.cli.output import finite

    store.finish(finite(results))
    return results


def make_generator(config: EvaluateConfig, concurrency: int, timeout: float) -> Generator:
    """The model or the endpoint."""
    if config.endpoint is not None:
        return Endpoint(config.endpoint, config.model, concurrency=concurrency, timeout=timeout)
    return LocalModel(config.model, gguf_file=config.gguf_file, dtype=config.dtype)


def validate(settings: Mapping[str, Any]) -> EvaluateConfig:
    """The settings, checked; the verifier is the data set's where none is given.

    Raises:
        RollwiseError: in one line.
    """
    given = dict(settings)
    spec: DataSpec = given["data"]
    if given.get("verifier") is None:
        given["verifier"] = spec.judged_by
    if given["verifier"] is None:
        raise RollwiseError(f"--verifier: {spec.source} names none; give numeric, math_verify, multiple_choice, ...")
    try:
        return EvaluateConfig.model_validate(given)
    except ValidationError as error:
        raise RollwiseError(f"--{explain(error, EvaluateConfig)}") from None


def wants_chat(model: str, endpoint: str | None, gguf_file: str | None = None) -> bool:
    """Whether prompts are conversations: at an endpoint, and where the model's tokenizer has a template."""
    if endpoint is not None:
        return True
    from transformers import AutoTokenizer

    from rollwise.tasks.models import hub_reachable, locate_model

    folder, file = locate_model(model, gguf_file)
    options: dict[str, Any] = {"gguf_file": file} if file else {}
    if not Path(folder).is_dir() and not hub_reachable():
        options["local_files_only"] = True
    try:
        return AutoTokenizer.from_pretrained(folder, **options).chat_template is not None
    # The libraries below have errors of their own, and all mean that the model cannot be had.
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise RollwiseError(f"model: {model} has no readable tokenizer ({type(error).__name__}: {reason})") from error


def check_columns(verifier: Verifier, held: Sequence[str]) -> None:
    """Raise `RollwiseError` where the rows lack the column a verifier compares with."""
    first = verifier.columns[:1]
    if first and first[0] not in held:
        raise RollwiseError(f"--verifier: {verifier.name} needs a column {first[0]!r}; the data has {', '.join(held)}")


def group_columns(config: EvaluateConfig, by: Sequence[str], held: Sequence[str]) -> list[str]:
    """Columns to break down by: those of a named data set, and those asked for."""
    own = CATALOGUE[config.data.source].groups if config.data.source in CATALOGUE else ()
    for name in by:
        if name not in held:
            raise RollwiseError(f"--by: no column {name!r}; the data has {', '.join(held)}")
    return list(dict.fromkeys([*own, *by]))


def default_ks(samples: int) -> list[int]:
    """1, 2, 4, ... below `samples`, and `samples`."""
    return sorted({samples, *(2**power for power in range(samples.bit_length()))}) if samples else []


def default_folder(config: EvaluateConfig, settings: Mapping[str, Any]) -> Path:
    """A folder below runs/evaluate whose name tells model and data, and stands for these settings alone."""
    words = [Path(config.model).stem, config.data.source.rpartition("/")[2].partition(".")[0], config.data.split]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(words))[:80]
    mark = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return Path("runs") / "evaluate" / f"{name}-{mark}"


def digest_of(rows: Any) -> str:
    """A short digest of prompts and answers, so that an evaluation never goes on with other data."""
    state = hashlib.sha256()
    names = [name for name in ("prompt", "answer") if name in rows.column_names]
    for row in rows.select_columns(names):
        state.update(json.dumps(row, sort_keys=True, default=str).encode())
    return state.hexdigest()[:16]
