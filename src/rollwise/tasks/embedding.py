"""Texts as vectors, for priors that foretell a prompt from those that read alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollwise.types import FloatArray, RollwiseError

WORDS = r"(?u)\w+|[^\w\s]"
"""Words and signs: in mathematics the signs and single digits are half of what is said."""


def embed_texts(texts: Sequence[str], dimensions: int = 64, seed: int = 0) -> FloatArray:
    """(n, d) unit vectors of texts by words, signs and pairs of them (TF-IDF, then a truncated SVD), d <= `dimensions`.

    A stand-in for a sentence encoder that needs no model; vectors of an encoder serve as well.

    Raises:
        RollwiseError: scikit-learn is not installed, or fewer than 2 different words in all.
    """
    try:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise RollwiseError(
            "embed_texts: needs scikit-learn; pip install 'rollwise[gp]', or pass vectors of your own"
        ) from None
    try:
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORDS).fit_transform(texts)
        wanted = min(dimensions, min(words.shape) - 1)
        points = TruncatedSVD(wanted, random_state=seed).fit_transform(words)
    except ValueError as error:
        raise RollwiseError(f"embed_texts: {error}; give texts with at least 2 different words") from None
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
