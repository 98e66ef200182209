"""How well VIP's predictor foretells success rates on a real GRPO log: prompts never seen, and the next visit of seen ones.

    python benchmarks/vip_predictor.py [--visits 0,10,40] [--dimensions 64]

Data: success_rates/rlvr_qwen25math1.5b_dsr_sub (8 rollouts a visit) under ROLLWISE_DATA. Mean squared error of
the predicted rate against the next 8 rollouts, whose own binomial noise is taken off.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from pathlib import Path

import numpy as np

from rollwise.beliefs import CarriedPrior
from rollwise.beliefs.gaussian_process import GaussianProcessPrior
from rollwise.tasks.embedding import embed_texts

OWN = (0.0, 0.8, 0.95)
"""Shares of the spread that texts do not explain; 0 is the published form."""


def main() -> None:
    """Print one line per visit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visits", default="0,10,40")
    parser.add_argument("--dimensions", type=int, default=64)
    arguments = parser.parse_args()
    folder = Path(os.environ.get("ROLLWISE_DATA", "../shared/data"))
    with gzip.open(folder / "success_rates/rlvr_qwen25math1.5b_dsr_sub.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    visits = [int(visit) for visit in arguments.visits.split(",")]
    rows = [row for row in rows if len(row["correct"]) > max(visits)]
    ids = [row["id"] for row in rows]
    counts = np.array([row["correct"][: max(visits) + 1] for row in rows])
    vectors = dict(zip(ids, embed_texts([row["problem"] for row in rows], arguments.dimensions), strict=True))
    print(f"{len(ids)} prompts")
    print("squared error of the predicted rate, binomial noise taken off (the spread of true rates is `mean`'s)")
    for visit in visits:
        print(f"visit {visit:>2}  never seen: {never_seen(ids, counts[:, visit], vectors)}")
        if visit:
            print(f"          seen before: {seen_before(ids, counts, visit, vectors)}")


def never_seen(ids: list[str], won: np.ndarray, vectors: dict) -> str:
    """Half of the prompts foretold from the other half."""
    half = np.random.default_rng(0).permutation(len(ids))[: len(ids) // 2]
    rest = np.setdiff1d(np.arange(len(ids)), half)
    errors = {"mean": error(np.full(len(rest), won[half].mean() / 8), won[rest])}
    for own in OWN:
        predictor = GaussianProcessPrior(vectors, own=own)
        predictor.observe([ids[k] for k in half], won[half], 8 - won[half])
        errors[f"own {own:g}"] = error(means(predictor.for_step([ids[k] for k in rest])), won[rest])
    return line(errors)


def seen_before(ids: list[str], counts: np.ndarray, visit: int, vectors: dict) -> str:
    """All prompts foretold from their own and the others' earlier visits."""
    now, last = counts[:, visit], counts[:, visit - 1]
    errors = {"mean": error(np.full(len(ids), last.mean() / 8), now), "last rate": error(last / 8, now)}
    carried = CarriedPrior()
    for earlier in range(visit):
        carried.observe(ids, counts[:, earlier], 8 - counts[:, earlier])
    errors["carried Beta"] = error(means(carried.for_step(ids)), now)
    for own in OWN:
        predictor = GaussianProcessPrior(vectors, own=own)
        predictor.observe(ids, last, 8 - last)
        errors[f"own {own:g}"] = error(means(predictor.for_step(ids)), now)
    return line(errors)


def means(beliefs: np.ndarray) -> np.ndarray:
    """(B,) means of beliefs (B, 2)."""
    return beliefs[:, 0] / beliefs.sum(axis=1)


def line(errors: dict[str, float]) -> str:
    """All errors in one line."""
    return ", ".join(f"{name} {value:.4f}" for name, value in errors.items())


def error(predicted: np.ndarray, won: np.ndarray) -> float:
    """Mean squared error against the true rates: the binomial variance of 8 rollouts is estimated and taken off."""
    rates = won / 8
    return float(((predicted - rates) ** 2 - rates * (1 - rates) / 7).mean())


if __name__ == "__main__":
    main()
