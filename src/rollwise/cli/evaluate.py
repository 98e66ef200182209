"""`rollwise evaluate`: greedy accuracy, avg@k, pass@k and maj@k of a model on a data set.

Completions are generated in batches that are the same in every run; while one is generated the last one is verified in
the processes of the verifier pool. Each is written once it is judged, so a killed evaluation goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rollwise.cli.evaluate_inputs import check_columns, read_groups, read_tokenizer
from rollwise.cli.evaluate_loop import EvaluateConfig, Item, generate, plan_batches
from rollwise.cli.evaluate_results import summarise
from rollwise.cli.evaluate_store import COMPLETIONS, EvaluationStore
from rollwise.cli.faults import explain
from rollwise.cli.output import finite
from rollwise.cli.preflight import check_prompts, check_template
from rollwise.cli.values import short
from rollwise.tasks.datasets import DataSpec, load_rows
from rollwise.tasks.endpoint import Endpoint
from rollwise.tasks.generation import Generator, LocalModel
from rollwise.tasks.verifiers import resolve_verifier
from rollwise.types import RollwiseError


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
        timeout: seconds a request to an endpoint may take before it is sent again.

    Raises:
        RollwiseError: naming the setting that does not fit.
    """
    config = validate(settings)
    if not config.greedy and not config.samples:
        raise RollwiseError("--samples: nothing to do with --no-greedy and no samples; give --samples 8")
    chosen = choose_ks(ks, config.samples)
    verifier = resolve_verifier(config.verifier)
    rows = load_rows(config.data)
    groups = read_groups(config.data.source, by, rows)
    check_columns(verifier, rows.column_names)
    began = time.monotonic()
    fingerprint = {"rows": len(rows), "digest": digest_of(rows)}
    stated = config.model_dump(mode="json")
    plan = list(plan_batches(config, [len(str(prompt)) for prompt in rows["prompt"]]))
    folder = out or default_folder(config, stated | fingerprint)
    with EvaluationStore(folder, stated | fingerprint, [item.key for batch in plan for item in batch]) as store:
        found = len(store.done)
        if left := what_is_left(plan, store, whole_batches=config.endpoint is None):
            if store.damaged:
                tell_damage(store, sum(map(len, plan)) - found)
            if config.endpoint is None:
                check_prompts(rows["prompt"], "--data")
                check_template(read_tokenizer(config.model, config.gguf_file), rows["prompt"], "--chat", config.model)
            generator = make_generator(config, concurrency, timeout)
            try:
                generate(generator, config, verifier, rows, left, store, progress)
            finally:
                if isinstance(generator, Endpoint):
                    generator.close()
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
        store.finish(finite(results))
    return results


def what_is_left(plan: Sequence[list[Item]], store: EvaluationStore, whole_batches: bool) -> list[list[Item]]:
    """The batches that hold what is to be made yet, whole where a batch is drawn together."""
    missing = [[item for item in batch if item.key not in store.done] for batch in plan]
    return [batch if whole_batches else rest for batch, rest in zip(plan, missing, strict=True) if rest]


def tell_damage(store: EvaluationStore, missing: int) -> None:
    """One line about lines of the store that cannot be read."""
    numbers = ", ".join(map(str, store.damaged[:5])) + (", ..." if len(store.damaged) > 5 else "")
    print(
        f"rollwise: {store.folder / COMPLETIONS}: damaged: line {numbers}; "
        f"kept: {len(store.done)} completions; to be made: {missing}",
        file=sys.stderr,
    )


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


def choose_ks(given: Sequence[int] | None, samples: int) -> list[int]:
    """The k of pass@k and maj@k, in order.

    Raises:
        RollwiseError: one that is no number of the samples.
    """
    if not given:
        return default_ks(samples)
    if not samples:
        raise RollwiseError("--k: there are no samples; give --samples 8")
    for k in given:
        if not 1 <= k <= samples:
            raise RollwiseError(f"--k: {short(k)} does not fit {samples} samples; give 1 to {samples}")
    return sorted(set(given))


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
