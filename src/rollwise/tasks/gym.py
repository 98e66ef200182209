"""Procedural data sets of the package `reasoning-gym` by name, judged by its own scorers."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rollwise.suggest import nearest
from rollwise.tasks.extraction import final_answer, last_boxed, last_line
from rollwise.tasks.verdict import LONGEST, Verdict, failure, success, unknown
from rollwise.types import RollwiseError

if TYPE_CHECKING:
    from datasets import Dataset

PREFIX = "reasoning_gym/"
COLUMN = "reasoning_gym"
"""The column that says, as JSON, which item a row is: name, seed, size, index and options."""

TEST_SEED = 1_000_003
"""Added to the seed of split "test", so that its items are drawn apart from those of "train"."""

INSTRUCTION = "Give your final answer between <answer> and </answer>."
TAGGED = re.compile(r"<answer>((?:(?!<answer>)[\s\S])*?)</answer>")


def build_gym(name: str, split: str, size: int, seed: int, options: Mapping[str, Any]) -> Dataset:
    """`size` items of the data set `name` with columns `prompt`, `answer` (None where several are right), `difficulty`
    (JSON) and COLUMN.

    Raises:
        RollwiseError: an unknown name or option, or the package not installed.
    """
    from datasets import Dataset

    if split not in ("train", "test"):
        raise RollwiseError(f"data.split: {PREFIX}{name} has no split {split!r}; give train or test")
    key = {
        "name": name,
        "seed": seed + (TEST_SEED if split == "test" else 0),
        "size": size,
        "options": dict(options),
    }
    items = _open(json.dumps(key, sort_keys=True))
    rows = [
        {
            "prompt": item["question"],
            "answer": None if item["answer"] is None else str(item["answer"]),
            "difficulty": json.dumps(item["metadata"].get("difficulty", {}), default=str, sort_keys=True),
            COLUMN: json.dumps(key | {"index": index}, sort_keys=True),
        }
        for index, item in ((index, items[index]) for index in range(size))
    ]
    return Dataset.from_list(rows)


def judge_gym(completion: str, row: Mapping[str, Any]) -> Verdict:
    """Success where the data set's scorer gives the answer full marks (1.0); partial credit is a failure, by its score.

    The answer is what stands in the last <answer> tags, else in a box, after "the answer is", or on the last line.
    """
    if not row.get(COLUMN):
        return unknown(f"the row has no {COLUMN}")
    key = json.loads(row[COLUMN])
    index = key.pop("index")
    text = completion[-LONGEST:]
    tagged = TAGGED.findall(text)
    answer = tagged[-1].strip() if tagged else last_boxed(text) or final_answer(text) or last_line(text)
    if not answer:
        return failure("no answer found")
    items = _open(json.dumps(key, sort_keys=True))
    item = _item(json.dumps(key, sort_keys=True), index)
    try:
        score = float(items.score_answer(answer, item))
    # Some scorers raise on text that is no answer of theirs, and mean that it is wrong.
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, SyntaxError) as error:
        return failure(f"the scorer raised {type(error).__name__}", answer[:200])
    return success("full marks", answer[:200]) if score >= 1.0 else failure(f"scored {score:.3g}", answer[:200])


@functools.lru_cache(maxsize=8)
def _open(key: str) -> Any:
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError:
        raise RollwiseError(f"data.source: {PREFIX}... needs: pip install 'rollwise[gym]'") from None
    asked = json.loads(key)
    if asked["name"] not in DATASETS:
        raise RollwiseError(f"data.source: no {PREFIX}{asked['name']}; {nearest(asked['name'], DATASETS)}")
    try:
        return reasoning_gym.create_dataset(asked["name"], seed=asked["seed"], size=asked["size"], **asked["options"])
    except (TypeError, AssertionError, ValueError) as error:
        raise RollwiseError(f"data.options: {PREFIX}{asked['name']} refuses them ({error})") from None


@functools.lru_cache(maxsize=4096)
def _item(key: str, index: int) -> Any:
    return _open(key)[index]
