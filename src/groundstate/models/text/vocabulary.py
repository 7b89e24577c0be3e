"""The tokenizer of an estimator: given, read from a file, or learned from the texts of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.reduce import current
from groundstate.compute.rows import Texts, hashes
from groundstate.data.text.hub import LEARNED
from groundstate.data.text.tokenizer import KINDS, Tokenizer

TRANSFORMER: dict[
    str, list[Any]
] = {  # constraints of the parameters that all transformers of texts have
    "tokenizer": [str, Path, Tokenizer],
    "vocab_size": [Interval(Integral, 1, None, closed="left"), None],
    "lowercase": ["boolean"],
    "dim": [Interval(Integral, 1, None, closed="left")],
    "layers": [Interval(Integral, 1, None, closed="left")],
    "heads": [Interval(Integral, 1, None, closed="left")],
    "dropout": [Interval(Real, 0, 1, closed="left")],
}


def tokenizer_of(
    given: Any,
    texts: Texts,
    weight: Tensor | None,
    special: Sequence[str],
    *,
    vocab_size: int | None = None,
    lowercase: bool = False,
) -> Tokenizer:
    """A tokenizer that has these special tokens.

    Learned merges count every distinct text of positive weight once, so that neither weights nor
    the order of the texts change them.

    Parameters
    ----------
    given : a ``Tokenizer``, a file or folder of one, or a kind that is learned from the texts
    texts, weight : rows
    special : tokens that must be there
    vocab_size, lowercase : of a learned one
    """
    if isinstance(given, str) and given in KINDS:
        weights = None if weight is None else weight.double().tolist()
        rows: Any = texts
        if given in LEARNED:
            rows, weights = _each_once(texts, weights), None
        return Tokenizer.train(
            kind=given,  # type: ignore[arg-type]
            vocab_size=vocab_size,
            special_tokens=special,
            texts=rows,
            weight=weights,
            lowercase=lowercase,
            reduce=current(),
        )
    found = given if isinstance(given, Tokenizer) else Tokenizer.load(Path(given))
    for token in special:
        found.number(token)  # says what is missing
    return found


def _each_once(texts: Texts, weights: list[float] | None) -> list[str]:
    """The distinct texts of positive weight; a text of several processes is that of the first one."""
    own = [1.0] * len(texts) if weights is None else weights
    strings = sorted({text for text, w in zip(texts.strings(), own, strict=True) if w > 0})
    reduce = current()
    if reduce.world == 1:
        return strings
    own_hashes = torch.from_numpy(hashes(Texts.of(strings)).view(np.int64))
    counts = reduce.gather(torch.tensor([len(strings)]))
    _, owner = np.unique(reduce.gather(own_hashes).numpy(), return_index=True)
    start = int(counts[: reduce.rank].sum())
    return [strings[i - start] for i in sorted(owner) if 0 <= i - start < len(strings)]
