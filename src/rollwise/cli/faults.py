"""What pydantic found wrong with settings, as one line: the setting, what is wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticUndefined

from rollwise.cli.switches import parts
from rollwise.cli.values import short
from rollwise.suggest import nearest

TYPES = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "dict": "settings",
    "model": "settings",
}
"""First word of pydantic's `int_parsing`, `int_type`, ... -> what people call it."""
FURTHER = ("type", "parsing", "from", "unicode")
"""Second words of faults of type; those of range, such as `string_too_short`, say themselves what they want."""
EXAMPLES = {
    "method": "cero, or {allocator: adaroll, waves: 4}",
    "preset": "cero",
    "allocator": "adaroll",
    "selector": "cero",
    "curators": "[replay]",
    "curator_settings": "{replay: {share: 0.5}}",
    "arms": "[{name: plain, allocator: uniform}]",
    "advantage": "grpo",
    "rewards": "[exact_match]",
    "reward_weights": "[1, 0.5]",
    "data": "{source: train.jsonl}",
    "eval_data": "{source: test.jsonl}",
    "evaluation": "{samples: 4}",
    "overlong": "{cache: 64}",
    "lora": "{r: 8}",
    "trainer": "{beta: 0.0}",
    "columns": "{prompt: question}",
}
"""Of settings whose default is no good example."""
PLAIN = {"int": "4", "float": "0.5", "bool": "true", "dict": "{name: value}", "model": "{name: value}"}


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """One line for the first fault of an instance of `model`, and how many more there are."""
    found = error.errors(include_url=False)
    first = foremost(found)
    place = ".".join(short(part) if isinstance(part, str) and len(part) > 80 else str(part) for part in first["loc"])
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{sentence(first, place, model)}{more}"


def foremost(found: Sequence[ErrorDetails]) -> ErrorDetails:
    """The fault to show: the first, but a key that is not known before one that is missing beside it, as it was meant."""
    beside = [
        fault for fault in found if fault["type"] == "extra_forbidden" and fault["loc"][:-1] == found[0]["loc"][:-1]
    ]
    return beside[0] if found[0]["type"] == "missing" and beside else found[0]


def sentence(fault: ErrorDetails, place: str, model: type[BaseModel]) -> str:
    """A fault in words, `place` before them."""
    loc, kind = fault["loc"], fault["type"]
    if kind == "extra_forbidden":
        return f"{place}: unknown setting; {nearest(str(loc[-1]), holder(model, loc[:-1]).model_fields)}"
    if kind == "missing":
        return f"{place}: missing; give it in the file or as a flag"
    message = " ".join(fault["msg"].removeprefix("Value error, ").split())
    if kind == "value_error":
        message = message.removeprefix(f"{loc[-1]}: ") if loc else message
        head = message.partition(":")[0]
        if loc and head.startswith(f"{loc[-1]}."):
            return f"{place}{message.removeprefix(str(loc[-1]))}"
        if head.partition(".")[0] in holder(model, loc).model_fields:
            return f"{place}.{message}" if place else message
        return f"{place}: {message}" if place else message
    word, _, rest = kind.partition("_")
    if word in TYPES and rest.partition("_")[0] in FURTHER:
        given = "nothing is given" if fault["input"] is None else f"{short(fault['input'])} does not fit"
        wanted = "a name or settings" if loc == ("method",) else TYPES[word]
        return f"{place}: {given}; give {wanted}, such as {example(model, loc, word)}"
    return f"{place}: {message[0].lower()}{message[1:]}, got {short(fault['input'])}"


def holder(model: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel]:
    """The settings that stand at a place of `model`, or the last on the way to it."""
    for part in place:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        for kind in parts(field.annotation) if field else ():
            entry = get_args(kind)[0] if get_origin(kind) is list else kind
            if isinstance(entry, type) and issubclass(entry, BaseModel):
                model = entry
    return model


def example(model: type[BaseModel], place: Sequence[int | str], word: str) -> str:
    """A value that fits at a place: of its name, its default, or any of its type."""
    names = [part for part in place if isinstance(part, str)]
    name = names[-1] if names else ""
    if name in EXAMPLES:
        inside = not isinstance(place[-1], str)
        return EXAMPLES[name].strip("[]").partition(",")[0] if inside and word != "model" else EXAMPLES[name]
    field = holder(model, place[:-1]).model_fields.get(name)
    default: Any = None if field is None else field.default
    if isinstance(default, (int, float, str)) and default is not PydanticUndefined and default != "":
        return str(default).lower() if isinstance(default, bool) else str(default)
    return PLAIN.get(word, "[a, b]" if word == "list" else "name")
