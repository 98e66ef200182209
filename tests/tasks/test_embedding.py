"""Texts as vectors: those that share words are near."""

from __future__ import annotations

import pytest

from rollwise.tasks.embedding import embed_texts
from rollwise.types import RollwiseError


def test_texts_that_share_words_are_near() -> None:
    pytest.importorskip("sklearn", reason="needs rollwise[gp]")
    points = embed_texts(["add two numbers", "add three numbers", "name a river", "name a long river"], dimensions=3)
    near = points @ points.T
    assert near[0, 1] > near[0, 2] and near[2, 3] > near[1, 2]
    with pytest.raises(RollwiseError, match="embed_texts"):
        embed_texts(["a", "a"])
