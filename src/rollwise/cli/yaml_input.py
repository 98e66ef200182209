"""YAML as people give it, in a file or after `--set`: read in bounded time, no key twice, no reference bombs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from rollwise.types import RollwiseError

MOST_CHARACTERS = 1 << 18
DEEPEST = 32
MOST_VALUES = 100_000
"""Values a document may hold once its references (`*name`, `<<`) are written out; a few short lines can mean billions."""


class SettingsLoader(yaml.SafeLoader):
    """PyYAML's safe loader that refuses a mapping with a key twice (it would silently keep the last)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping, its keys checked before `<<` adds those that may be overridden."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is set twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_yaml(text: str, setting: str) -> Any:
    """The value of a YAML document; an empty one is None.

    Raises:
        RollwiseError: in one line that begins with `setting` and has the line number where there is one: no YAML, a key
            given twice, more than `MOST_VALUES` values, a reference to itself, a tag that builds something else.
    """
    if len(text) > MOST_CHARACTERS:
        raise RollwiseError(f"{setting}: {len(text):,} characters; a configuration has at most {MOST_CHARACTERS:,}")
    loader: SettingsLoader | None = None
    try:
        loader = SettingsLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if written_out(node, {}) > MOST_VALUES:
            raise RollwiseError(
                f"{setting}: its references (*name) stand for more than {MOST_VALUES:,} values; write out those meant"
            )
        return loader.construct_document(node)
    except RollwiseError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
        raise RollwiseError(f"{setting}{where}: not valid YAML ({' '.join(str(reason).split())[:200]})") from None
    except RecursionError:
        raise RollwiseError(f"{setting}: not valid YAML (nested too deeply)") from None
    except UnicodeEncodeError:
        raise RollwiseError(f"{setting}: not valid YAML (half of a surrogate pair, as \\ud800, is no text)") from None
    # The loader's constructors of numbers and dates raise what they meet: 2026-99-99 a ValueError, others otherwise.
    except Exception as error:
        reason = " ".join(str(error).split()).partition("; ")[0][:200]
        raise RollwiseError(f"{setting}: not valid YAML ({reason}); quote what is text") from None
    finally:
        if loader is not None:
            loader.dispose()


def written_out(node: yaml.Node, known: dict[int, int], depth: int = 0) -> int:
    """How many values a node stands for once references are followed; a node that holds itself counts as too many.

    Raises:
        RecursionError: deeper than `DEEPEST`.
        UnicodeEncodeError: text that could be neither printed nor written to a file.
    """
    if id(node) in known:
        return known[id(node)]
    if depth > DEEPEST:
        raise RecursionError
    known[id(node)] = MOST_VALUES + 1  # until it is counted: met again inside itself
    total = 1
    if isinstance(node, yaml.ScalarNode):
        node.value.encode()
    elif isinstance(node, yaml.SequenceNode):
        total += sum(written_out(entry, known, depth + 1) for entry in node.value)
    elif isinstance(node, yaml.MappingNode):
        total += sum(written_out(part, known, depth + 1) for pair in node.value for part in pair)
    known[id(node)] = total
    return total
