"""Accuracy of a model on held-out rows: greedy, and sampled at the training temperature."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from typing import Any

from rollwise.cli.config import RunConfig
from rollwise.cli.preflight import Inputs


def evaluate(trainer: Any, inputs: Inputs, config: RunConfig) -> dict[str, float]:
    """Mean score of the outcome function (else of the first reward) on the evaluation rows.

    Returns `prompts`, `greedy` and, with `evaluation.samples` > 0, `sampled`; completions the function could not judge
    are left out of the means and counted as `unknown`, a share of all. Draws from its own seed and leaves the trainer's
    generators as they were, so that measuring one arm does not set it apart from the others.
    """
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        scores = {"greedy": measure(trainer, inputs, config, samples=1, sample=False)}
        if config.evaluation.samples:
            scores["sampled"] = measure(trainer, inputs, config, samples=config.evaluation.samples, sample=True)
    result: dict[str, float] = {"prompts": len(inputs.eval_rows or [])}
    for kind, values in scores.items():
        known = [value for value in values if not math.isnan(value)]
        result[kind] = sum(known) / len(known) if known else math.nan
    every = [value for values in scores.values() for value in values]
    return result | {"unknown": sum(map(math.isnan, every)) / len(every)}


def measure(trainer: Any, inputs: Inputs, config: RunConfig, *, samples: int, sample: bool) -> list[float]:
    """The score of `samples` completions of every evaluation prompt, NaN where it could not be judged."""
    score = inputs.outcome if callable(inputs.outcome) else named(inputs)
    rows: Any = inputs.eval_rows
    indices = [index for index in range(len(rows)) for _ in range(samples)]
    scores: list[float] = []
    for start in range(0, len(indices), config.evaluation.batch):
        batch = rows.select(indices[start : start + config.evaluation.batch])
        completions = complete(trainer, batch["prompt"], config, sample=sample)
        columns = {name: list(batch[name]) for name in batch.column_names if name != "prompt"}
        scores += call(score, prompts=list(batch["prompt"]), completions=completions, **columns)
    return scores


def named(inputs: Inputs) -> Callable[..., Any]:
    """The reward function that `outcome` names, else the first."""
    return next((reward for reward in inputs.rewards if reward.__name__ == inputs.outcome), inputs.rewards[0])


def call(score: Callable[..., Any], **arguments: Any) -> list[float]:
    """Scores as floats, NaN for None; a coroutine function is run."""
    accepted = inspect.signature(score).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()):
        arguments = {name: value for name, value in arguments.items() if name in accepted}
    values = score(**arguments)
    values = asyncio.run(values) if inspect.iscoroutine(values) else values
    return [math.nan if value is None else float(value) for value in values]


def complete(trainer: Any, prompts: Any, config: RunConfig, *, sample: bool) -> list[Any]:
    """One completion per prompt, text for text prompts and an assistant message for conversations."""
    import torch

    tokenizer, model = trainer.processing_class, trainer.model
    conversational = not isinstance(prompts[0], str)
    texts = (
        [tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True) for prompt in prompts]
        if conversational
        else list(prompts)
    )
    encoded = tokenizer(
        texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=not conversational
    )
    encoded = {key: encoded[key].to(model.device) for key in ("input_ids", "attention_mask")}
    choice = {"do_sample": True, "temperature": config.temperature, "top_k": 0} if sample else {"do_sample": False}
    training = model.training
    model.eval()
    with torch.inference_mode():
        made = model.generate(
            **encoded, **choice, max_new_tokens=config.max_completion_length, pad_token_id=tokenizer.pad_token_id
        )
    model.train(training)
    answers = tokenizer.batch_decode(made[:, encoded["input_ids"].shape[1] :], skip_special_tokens=True)
    return [[{"role": "assistant", "content": answer}] for answer in answers] if conversational else answers
