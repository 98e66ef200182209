"""Pick a learning rate out of five on validation rows, as the published runs did.

    python examples/paper/search_learning_rate.py examples/paper/gsm8k.yaml --steps 200 --validation 256

Each candidate trains the config's method alone on the training rows less the last `--validation`, which it is measured
on; test rows are never looked at. Finished candidates below `--out` are not run again. Flags of `rollwise train` may
follow after `--`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rollwise.cli.config import RunConfig, read_config
from rollwise.tasks.datasets import load_rows

CANDIDATES = (5e-7, 1e-6, 2e-6, 5e-6, 1e-5)
"""The published five are not known; these are the usual ones."""


def split_rows(config: RunConfig, validation: int) -> list[str]:
    """Settings that train on all rows but the last `validation`, and evaluate on those."""
    rows = len(load_rows(config.data))
    if not 0 < validation < rows:
        raise SystemExit(f"--validation: {validation} of {rows} rows; give fewer")
    held = config.data.model_dump(exclude_defaults=True) | {
        "skip": config.data.skip + rows - validation,
        "limit": validation,
    }
    kept = ["--set", f"data.limit={rows - validation}", "--set", "compare_uniform=false"]
    return kept + ["--set", f"eval_data={json.dumps(held)}"]


def command(config: Path, rate: float, steps: int, out: Path, settings: list[str], flags: list[str]) -> list[str]:
    """The training run of one candidate."""
    given = ["--config", str(config), "--learning-rate", f"{rate:g}", "--steps", str(steps), "--output", str(out)]
    return [str(Path(sys.executable).parent / "rollwise"), "train", "--json", *given, *settings, *flags]


def accuracy(result: dict[str, Any]) -> float:
    """What candidates are compared by: sampled accuracy, else greedy, of the one arm."""
    (scores,) = result["evaluation"].values()
    return float(scores.get("sampled", scores["greedy"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--validation", type=int, default=256)
    parser.add_argument("--rates", type=float, nargs="+", default=CANDIDATES)
    parser.add_argument("--out", type=Path, default=None, help="default runs/learning-rate-<name>")
    parser.add_argument("flags", nargs="*", help="after --: flags of rollwise train")
    options = parser.parse_args()
    config = read_config(options.config, {})
    out = options.out or Path("runs") / f"learning-rate-{config.name}"
    out.mkdir(parents=True, exist_ok=True)
    settings = split_rows(config, options.validation)
    found: dict[float, float] = {}
    for rate in options.rates:
        kept = out / f"{rate:g}.json"
        if not kept.exists():
            run = command(options.config, rate, options.steps, out / f"run-{rate:g}", settings, options.flags)
            done = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True)
            kept.write_text(done.stdout)
        found[rate] = accuracy(json.loads(kept.read_text()))
        print(f"{rate:g}: {found[rate]:.4f}")
    print(f"best: {max(found, key=lambda rate: found[rate]):g}")


if __name__ == "__main__":
    main()
