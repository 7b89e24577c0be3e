"""Free text as the numbers of its words, in their order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data.preparation.encoders import Floats
from groundstate.data.preparation.terms import TWICE, Tokens, holding, plain

_FIRST = 2  # 0 is no word, 1 a word that is not in the vocabulary
_MOST = 30_000  # words of the vocabulary
_PATTERN = r"\w+|[^\w\s]"  # words, and marks such as "!"


@dataclass(frozen=True, eq=False)
class Words:
    r"""Free text as numbers of words, :math:`(x_1, \dots, x_T, 0, \dots, 0)`, for models that read them in
    their order.

    Words and marks of texts of a total weight of at least two are numbered from 2 on, the frequent
    ones first; 1 stands for all others and 0 is behind the end. Of longer texts the first words
    are read.

    Attributes
    ----------
    words : the vocabulary, by number
    length : columns, the words of the longest text of training, or the most that are read
    """

    kind: ClassVar[str] = "words"
    words: pl.Series = field(repr=False)
    length: int

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None, most: int) -> Words:
        """Learn the vocabulary from texts of positive weight, and how many words are read."""
        counts = np.ones(len(values)) if weights is None else weights
        tokens = Tokens.of(plain(values), None, counts, pattern=_PATTERN)
        weight = holding(tokens.counts(), counts)
        order = np.argsort(-weight, kind="stable")[:_MOST]  # equal ones by their letters
        kept = order[weight[order] >= TWICE]
        sizes = np.bincount(tokens.row, minlength=len(values))
        longest = int(sizes[counts > 0].max(initial=1))
        return cls(tokens.words.gather(kept).alias("words"), min(max(longest, 1), most))

    def transform(self, values: pl.Series) -> NDArray[np.float64]:
        """Numbers of the first words of each text, ``(n, length)``."""
        tokens = Tokens.of(plain(values), self.words, pattern=_PATTERN)
        starts = np.searchsorted(tokens.row, np.arange(len(values)))
        place = np.arange(len(tokens.row)) - starts[tokens.row]
        read = place < self.length
        out = np.zeros((len(values), self.length))
        out[tokens.row[read], place[read]] = np.where(tokens.code >= 0, tokens.code + _FIRST, 1)[
            read
        ]
        return out

    def names(self, column: str) -> list[str]:
        return [f"{column}: word {i + 1}" for i in range(self.length)]

    def to_state(self) -> dict[str, Any]:
        return {"words": self.words.to_list(), "length": self.length}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Words:
        return cls(pl.Series("words", state["words"], dtype=pl.String), int(state["length"]))
