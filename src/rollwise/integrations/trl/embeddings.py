"""Vectors of the training prompts' texts, for priors that foretell a prompt from those that read alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from datasets import Dataset

from rollwise.beliefs import PriorSource
from rollwise.imports import first_line, load_function
from rollwise.integrations.trl.config import RollwiseGRPOConfig
from rollwise.types import FloatArray, RollwiseError

DECIMALS = 6
"""Vectors are rounded to it, so that a resumed run finds those it had, whatever order a machine added numbers in."""


def prompt_vectors(args: RollwiseGRPOConfig, dataset: Any, accelerator: Accelerator) -> dict[str, FloatArray]:
    """Vector (d,) of each prompt by its id where the prior needs them, none else; made on one process, given to all.

    Raises:
        RollwiseError: a stream, whose prompts are not known at the start; no scikit-learn; a function of one's own that
            fails or gives something else than a vector per text.
    """
    if args.prior != "gaussian_process":
        return {}
    if not isinstance(dataset, Dataset):
        raise RollwiseError(
            "prior: gaussian_process reads all prompts at the start, which a stream has not; use carried (method vip_beta)"
        )
    found: list[Any] = [None]
    if accelerator.is_main_process:
        try:
            found = [_embed(args, dataset)]
        except RollwiseError as error:  # the others wait for what is broadcast
            found = [error]
    broadcast_object_list(found)
    if isinstance(found[0], RollwiseError):
        raise found[0]
    vectors: dict[str, FloatArray] = found[0]
    return vectors


def opening(prior: PriorSource, ids: Sequence[str], accelerator: Accelerator) -> FloatArray:
    """(B, 2) the beliefs a step opens with, alike on all processes.

    Counts add up alike everywhere. The solution of a linear system need not, where processes have unlike processors.
    """
    beliefs = prior.for_step(ids)
    if prior.name == "gaussian_process" and accelerator.num_processes > 1:
        beliefs = broadcast_object_list([beliefs])[0]
    return beliefs


def _embed(args: RollwiseGRPOConfig, dataset: Dataset) -> dict[str, FloatArray]:
    from rollwise.tasks.embedding import embed_texts

    column = args.prompt_id_column
    ids = [str(key) for key in dataset[column]] if column else [str(row) for row in range(len(dataset))]
    texts = dict(zip(ids, (text_of(prompt) for prompt in dataset["prompt"]), strict=True))
    own = (args.prior_settings or {}).get("embedding")
    if own is None:
        points = embed_texts(list(texts.values()))
    else:
        points = _by_function(own, list(texts.values()))
    return dict(zip(texts, np.round(points, DECIMALS), strict=True))


def _by_function(address: str, texts: Sequence[str]) -> FloatArray:
    setting = "prior_settings.embedding"
    function = load_function(address, setting)
    try:
        points = np.asarray(function(texts), dtype=np.float64)
    # whatever a function of the user's raises is theirs to mend
    except Exception as error:
        raise RollwiseError(f"{setting}: {address} raised {type(error).__name__}: {first_line(error)}") from error
    if points.ndim != 2 or len(points) != len(texts) or not np.isfinite(points).all():
        raise RollwiseError(
            f"{setting}: {address} gave an array {points.shape} for {len(texts)} texts; return finite numbers (n, d)"
        )
    if not points.shape[1]:
        raise RollwiseError(f"{setting}: {address} gave vectors without numbers; return (n, d) with d of 1 or more")
    if len(set(texts)) > 1 and not np.ptp(np.round(points, DECIMALS), axis=0).any():
        raise RollwiseError(
            f"{setting}: {address} gave the same vector for all {len(texts)} texts, from which nothing is foretold; return "
            "vectors that tell texts apart"
        )
    return points


def text_of(prompt: Any) -> str:
    """The words of a prompt: itself, or what all messages of a conversation say."""
    if isinstance(prompt, str):
        return prompt
    parts = [message.get("content") if isinstance(message, Mapping) else message for message in prompt]
    return "\n".join(part if isinstance(part, str) else str(part) for part in parts)
