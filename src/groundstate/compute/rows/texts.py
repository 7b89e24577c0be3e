"""Texts as rows: their bytes, and the numbers of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.rows.ragged import Ragged, offsets_of
from groundstate.compute.rows.record import Record
from groundstate.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Texts(Ragged):
    """Strings, kept as the bytes of their UTF-8 form.

    Examples
    --------
    >>> texts = Texts.of(["to be", "or not", "to be"])
    >>> texts
    3 texts of 5 to 6 bytes
    >>> texts[[2, 1]].strings()
    ['to be', 'or not']
    """

    @classmethod
    def of(cls, rows: Sequence[str], dtype: torch.dtype | None = None) -> Self:
        encoded = [text.encode("utf-8", "surrogatepass") for text in rows]
        lengths = torch.tensor([len(e) for e in encoded], dtype=torch.int64)
        values = torch.from_numpy(np.frombuffer(b"".join(encoded), np.uint8).copy())
        return cls(values, offsets_of(lengths))

    def strings(self) -> list[str]:
        """The texts."""
        data, ends = self.values.cpu().numpy().tobytes(), self.offsets.tolist()
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    def describe(self) -> str:
        return f"{len(self)} texts of {self._sizes('bytes')}"


@dataclass(frozen=True, eq=False, repr=False)
class Words(Texts):
    """Sentences that are cut into words already, kept as texts with a word in each line.

    Examples
    --------
    >>> rows = Words.of([["to", "be"], [], ["New York"]])
    >>> rows
    3 sentences of 0 to 2 words
    >>> rows[[2, 0]].words()
    [['New York'], ['to', 'be']]
    """

    @classmethod
    def of(cls, rows: Sequence[Sequence[str]], dtype: torch.dtype | None = None) -> Self:
        for i, row in enumerate(rows):
            if isinstance(row, str) or not all(isinstance(w, str) for w in row):
                raise DataError(f"row {i} is {row!r:.80}, expected a list of words")
            broken = next((w for w in row if "\n" in w or not w), None)
            if broken is not None:
                raise DataError(
                    f"row {i} has the word {broken!r}; words are not empty, in one line"
                )
        return super().of(["\n".join(row) for row in rows])

    def words(self) -> list[list[str]]:
        """The words of each row."""
        return [text.split("\n") if text else [] for text in self.strings()]

    def describe(self) -> str:
        sizes = [len(row) for row in self.words()] or [0]
        low, high = min(sizes), max(sizes)
        many = f"{high} words" if low == high else f"{low} to {high} words"
        return f"{len(self)} sentences of {many}"


@dataclass(frozen=True, eq=False, repr=False)
class Tokens(Record):
    """Token numbers of texts, and the hash of the text each row was read from.

    Rows are known by their text: two texts with the same tokens stay two, and another vocabulary
    changes no draw.

    Parameters
    ----------
    tokens : Ragged of int64
    content : Tensor of int64, ``(n,)``
        Hashes of the texts.

    Examples
    --------
    >>> rows = Tokens.of(Ragged.of([[0, 1], [2]]), Texts.of(["to be", "or"]))
    >>> rows
    2 token sequences of 1 to 2 tokens
    """

    tokens: Ragged
    content: Tensor

    @classmethod
    def of(cls, tokens: Ragged, texts: Texts | None = None) -> Self:
        """Tokens of texts; without texts the tokens are the content."""
        words = (tokens if texts is None else texts).hashes().view(np.int64)
        return cls(tokens, torch.from_numpy(words).to(tokens.device))

    def hashes(self) -> NDArray[np.uint64]:
        return self.content.cpu().numpy().view(np.uint64)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.tokens.tensors()

    def describe(self) -> str:
        return f"{len(self)} token sequences of {self.tokens._sizes('tokens')}"


@dataclass(frozen=True, eq=False, repr=False)
class Gaps(Tokens):
    """Tokens of which some places are asked about.

    Parameters
    ----------
    gaps : Ragged of int64
        The places, counted from the beginning of each row.
    """

    gaps: Ragged

    @property
    def places(self) -> Tensor:
        """The gaps as places among all tokens, ``(G,)``."""
        return self.gaps.values + self.tokens.offsets[:-1][self.gaps.row]
