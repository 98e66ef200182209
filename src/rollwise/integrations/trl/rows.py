"""Single rows of generated blocks: cut out, kept for later steps, moved between processes, and put into one block again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from rollwise.integrations.trl.merge import LEFT, merge_waves
from rollwise.types import FloatArray

Row = dict[str, torch.Tensor]
"""One row's tensors, [1, tokens] each, without padding."""

SCALE = "rollwise_scale"
"""Key of the factor that makes a mean over rows the mean over rows that train, where a block holds masked ones."""

ROW_MEAN_LOSSES = ("grpo", "sapo", "dr_grpo", "luspo")
"""TRL's losses that divide by the number of rows."""


def cut_rows(part: Mapping[str, Any], lengths: Sequence[int]) -> list[Row]:
    """The rows of a block whose completions are `lengths` (k,) tokens long."""
    widths = part["prompt_mask"].sum(1).tolist()
    rows = []
    for place, (prompt, completion) in enumerate(zip(widths, lengths, strict=True)):
        row: Row = {}
        for key, values in part.items():
            if values.ndim == 0 or key == "advantages":
                continue
            own = values[place : place + 1]
            if own.ndim > 1:
                own = own[:, own.size(1) - int(prompt) :] if key in LEFT else own[:, : max(1, int(completion))]
            row[key] = own
        rows.append(row)
    return rows


class Payload:
    """Rows that may train again: this process's own tensors, and on which process every row lies."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.owners: dict[str, int] = {}

    def keep(self, held: Iterable[str], rows: Mapping[str, Row], owners: Mapping[str, int]) -> None:
        """Keep the rows of a step that are held, and forget those no more held."""
        wanted = frozenset(held)
        self.rows = {key: row for key, row in (self.rows | dict(rows)).items() if key in wanted}
        self.owners = {key: rank for key, rank in (self.owners | dict(owners)).items() if key in wanted}

    def state_dict(self) -> dict[str, Any]:
        """Tensors on the processor, and the owners."""
        return {"rows": {key: to_cpu(row) for key, row in self.rows.items()}, "owners": dict(self.owners)}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """Take over what `state_dict` gave; arrays may have taken the place of tensors."""
        self.rows = {
            key: {name: torch.as_tensor(values).to(device) for name, values in row.items()}
            for key, row in state["rows"].items()
        }
        self.owners = {key: int(rank) for key, rank in state["owners"].items()}


def assign(owners: Sequence[int], world: int, each: int) -> list[list[int]]:
    """For each of `world` processes, which of the rows it trains, at most `each`; rows stay where they are, if they can."""
    taken: list[list[int]] = [[] for _ in range(world)]
    moving: list[int] = []
    for place, rank in enumerate(owners):
        (taken[rank] if len(taken[rank]) < each else moving).append(place)
    for rank in range(world):
        room = each - len(taken[rank])
        taken[rank] += moving[:room]
        moving = moving[room:]
    return taken


def build_block(
    ids: Sequence[str],
    advantages: FloatArray,
    owners: Mapping[str, int],
    own: Mapping[str, Row],
    accelerator: Accelerator,
    chunks: int,
    pad_token_id: int,
) -> dict[str, Any]:
    """This process's part of a block that trains the rows `ids` (m,) with `advantages` (m,).

    Each process gets the same number of rows, a multiple of `chunks`; what is missing is filled with masked rows, and
    `SCALE` says by how much a mean over all rows is then too small.
    """
    world, rank = accelerator.num_processes, accelerator.process_index
    each = -(-len(ids) // (world * chunks)) * chunks
    taken = assign([owners[key] for key in ids], world, each)
    moving = [ids[place] for to, places in enumerate(taken) for place in places if owners[ids[place]] != to]
    # a process without any row needs one to mask
    moving += ids[:1] if not all(taken) else []
    found = dict(own)
    if moving:
        for part in gather_object([{key: to_cpu(own[key]) for key in moving if key in own}]):
            found |= {key: move(row, accelerator.device) for key, row in part.items() if key not in found}
    mine = [ids[place] for place in taken[rank]]
    rows = [found[key] for key in mine]
    rows += [mask(found[(mine or ids)[0]])] * (each - len(mine))
    block = merge_waves(rows, torch.arange(each), pad_token_id)
    gains = [float(advantages[place]) for place in taken[rank]] + [0.0] * (each - len(mine))
    block["advantages"] = torch.tensor(gains, dtype=torch.float32, device=accelerator.device)
    counted = block["completion_mask"] * block.get("tool_mask", 1)
    block["num_items_in_batch"] = accelerator.gather(counted.sum()).sum()
    block[SCALE] = torch.tensor(each * world / len(ids), device=accelerator.device)
    return block


def mask(row: Row) -> Row:
    """The row with nothing in it that counts."""
    return row | {"completion_mask": torch.zeros_like(row["completion_mask"])}


def to_cpu(row: Row) -> Row:
    """The row where it can be pickled."""
    return {name: values.detach().cpu().clone() for name, values in row.items()}


def move(row: Row, device: torch.device) -> Row:
    """The row on the device that trains."""
    return {name: values.to(device) for name, values in row.items()}
