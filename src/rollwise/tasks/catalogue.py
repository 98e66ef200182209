"""Data sets by name: where their rows are, on disk (`$ROLLWISE_DATA`) and on the hub, and how a row becomes a problem.

Nothing of them is shipped in the package: LogiQA v1 and CoLoTa have no licence text, LogiQA 2.0 is non-commercial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rollwise.tasks.extraction import after_hashes, last_boxed
from rollwise.tasks.options import LETTERS

Problem = dict[str, Any]
"""A row as every data set has it: `prompt` (the bare problem), `answer`, then its own columns."""


@dataclass(frozen=True)
class Source:
    """One split: files below `$ROLLWISE_DATA`, else a hub data set, its configuration, split and revision."""

    files: tuple[str, ...]
    hub: str | None = None
    subset: str | None = None
    split: str = "test"
    revision: str | None = None


@dataclass(frozen=True)
class NamedSet:
    """A data set under a name.

    `read` turns a row, of either source, into a Problem, None to leave it out. `chat` is the instruction that follows
    the problem for instruct models, `base` the template for base models, `stop` the texts at which a base model has
    begun another problem. `groups` are columns worth a breakdown.
    """

    name: str
    verifier: str
    splits: Mapping[str, Source]
    read: Callable[[Mapping[str, Any], str], Problem | None]
    licence: str
    chat: str
    base: str
    stop: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    holdout: float | None = None
    """Share of rows that split "test" holds, drawn by the spec's seed, where no split is published."""


BOXED = "Please reason step by step, and put your final answer within \\boxed{}."
LETTER = "Think step by step, then end with: The answer is (X), where X is the letter of the right option."
YES_OR_NO = "Think step by step, then end with: The answer is yes, or: The answer is no."
QUESTION = ("\nQuestion:", "\n\nProblem:", "\n\nQ:")


def _gsm8k(row: Mapping[str, Any], split: str) -> Problem:
    return {"prompt": row["question"], "answer": after_hashes(row["answer"]), "solution": row["answer"]}


def _math(row: Mapping[str, Any], split: str) -> Problem:
    level = row.get("level")
    digits = "".join(character for character in str(level) if character.isdigit())
    return {
        "prompt": row.get("problem") or row.get("question"),
        "answer": row.get("answer") or last_boxed(row["solution"]),
        "level": int(digits or 0),
        "subject": row.get("subject") or row.get("type") or "",
        "id": row.get("unique_id") or "",
        "solution": row.get("solution") or "",
    }


def _contest(row: Mapping[str, Any], split: str) -> Problem:
    """AIME, AMC, Minerva: a problem and an answer, under either of two names."""
    answer = row["answer"]
    return {
        "prompt": row.get("problem") or row["question"],
        "answer": str(int(answer)) if isinstance(answer, float) and answer.is_integer() else str(answer),
        "subject": row.get("type") or "",
    }


def _olympiad(row: Mapping[str, Any], split: str) -> Problem:
    answers = row.get("answer") or row.get("final_answer")
    return {
        "prompt": row.get("problem") or row["question"],
        "answer": ", ".join(answers) if isinstance(answers, list) else str(answers),
        "subject": row.get("subfield") or "",
        "answer_type": row.get("answer_type") or "",
    }


def _logiqa(row: Mapping[str, Any], split: str) -> Problem | None:
    """Both editions and the hub's; of LogiQA 2.0 as training data, rows that re-translate a v1 test item are left out."""
    if split == "train" and str(row.get("overlap_v1") or "").startswith("test-"):
        return None
    label = row["label"] if "label" in row else row["correct_option"]
    options = [str(option) for option in row["options"]]
    listed = "\n".join(f"{LETTERS[index]}. {option}" for index, option in enumerate(options))
    question = row["question"] if "question" in row else row["query"]
    return {"prompt": f"{row['context']}\n{question}\n{listed}", "answer": LETTERS[int(label)], "options": options}


def _colota(row: Mapping[str, Any], split: str) -> Problem:
    claim = str(row["id"]).startswith("C")
    question = f"True or false: {row['query']}" if claim else row["query"]
    return {"prompt": question, "answer": "yes" if row["answer"] else "no", "id": row["id"]}


def _maths(name: str, files: str, hub: str | Source, licence: str, read: Any = _contest, **more: Any) -> NamedSet:
    source = hub if isinstance(hub, Source) else Source((files,), hub)
    return NamedSet(
        name,
        "math_verify",
        {"test": source},
        read,
        licence,
        BOXED,
        "Problem:\n{prompt}\n\nSolution:\n",
        QUESTION,
        **more,
    )


NO_LICENCE = "none stated in its repository"
COMPETITION = "MIT (copy); the problems' rights are with their competitions"

_SETS = (
    NamedSet(
        "gsm8k",
        "numeric",
        {
            "train": Source(("gsm8k/train.jsonl.gz",), "openai/gsm8k", "main", "train"),
            "test": Source(("gsm8k/test.jsonl.gz",), "openai/gsm8k", "main", "test"),
        },
        _gsm8k,
        "MIT",
        "Solve the problem step by step. End with a line that holds #### and the answer as a number.",
        "Question: {prompt}\nAnswer:",
        QUESTION,
    ),
    NamedSet(
        "math",
        "math_verify",
        {
            "train": Source(("math/train.jsonl.gz",), "DigitalLearningGmbH/MATH-lighteval", "default", "train"),
            "test": Source(("math/test.jsonl.gz",), "DigitalLearningGmbH/MATH-lighteval", "default", "test"),
        },
        _math,
        "MIT",
        BOXED,
        "Problem:\n{prompt}\n\nSolution:\n",
        QUESTION,
        ("level", "subject"),
    ),
    _maths("math500", "math/math500.jsonl.gz", "HuggingFaceH4/MATH-500", "MIT", _math, groups=("level", "subject")),
    _maths(
        "aime24",
        "",
        Source(("math_eval/aime24.jsonl.gz",), "HuggingFaceH4/aime_2024", None, "train"),
        COMPETITION,
    ),
    _maths("aime25", "math_eval/aime25.jsonl.gz", "math-ai/aime25", COMPETITION),
    _maths("amc23", "math_eval/amc23.jsonl.gz", "math-ai/amc23", COMPETITION),
    _maths("minerva", "math_eval/minerva_math.jsonl.gz", "math-ai/minervamath", COMPETITION, groups=("subject",)),
    _maths(
        "olympiadbench",
        "",
        Source(("math_eval/olympiadbench.jsonl.gz",), "Hothan/OlympiadBench", "OE_TO_maths_en_COMP", "train"),
        COMPETITION,
        _olympiad,
        groups=("subject", "answer_type"),
    ),
    NamedSet(
        "logiqa",
        "multiple_choice",
        {
            # only the first 50 training rows have a copy that can be reached: the split is the hub's
            "train": Source((), "lucasmccabe/logiqa", None, "train", "refs/convert/parquet"),
            "validation": Source(
                ("logiqa/eval.jsonl.gz",), "lucasmccabe/logiqa", None, "validation", "refs/convert/parquet"
            ),
            "test": Source(("logiqa/test.jsonl.gz",), "lucasmccabe/logiqa", None, "test", "refs/convert/parquet"),
        },
        _logiqa,
        NO_LICENCE,
        LETTER,
        "{prompt}\nThe answer is (",
        ("\n",),
    ),
    NamedSet(
        "logiqa2",
        "multiple_choice",
        {
            "train": Source(("logiqa/logiqa2_dev.jsonl.gz", "logiqa/logiqa2_test.jsonl.gz")),
            "validation": Source(("logiqa/logiqa2_dev.jsonl.gz",)),
            "test": Source(("logiqa/logiqa2_test.jsonl.gz",)),
        },
        _logiqa,
        "CC BY-NC-SA 4.0 (non-commercial)",
        LETTER,
        "{prompt}\nThe answer is (",
        ("\n",),
    ),
    NamedSet(
        "colota",
        "yes_no",
        {"train": Source(("colota/qa.jsonl.gz",)), "test": Source(("colota/qa.jsonl.gz",))},
        _colota,
        NO_LICENCE,
        YES_OR_NO,
        "Question: {prompt}\nAnswer (yes or no):",
        ("\n",),
        holdout=0.1,
    ),
    NamedSet(
        "colota_claims",
        "yes_no",
        {"train": Source(("colota/cv.jsonl.gz",)), "test": Source(("colota/cv.jsonl.gz",))},
        _colota,
        NO_LICENCE,
        YES_OR_NO,
        "Question: {prompt}\nAnswer (true or false):",
        ("\n",),
        holdout=0.1,
    ),
)

CATALOGUE: dict[str, NamedSet] = {named.name: named for named in _SETS}
"""Name -> data set. `logiqa2`'s train split is both files less the rows that overlap the v1 test: 2,871."""
