r"""Kernels on texts, and the check that a matrix is a Gram matrix at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

WORD = re.compile(r"\b\w\w+\b")


Text = str | Sequence[str]  # a string, or the tokens it was cut into


class _Counts:
    """A kernel on texts whose feature map counts pieces of them."""

    normalize: bool

    def pieces(self, text: Text) -> Iterable[Hashable]:
        raise TypeError(f"{type(self).__name__} must say which pieces of a text it counts")

    def __call__(self, A: Sequence[Text], B: Sequence[Text] | None = None) -> NDArray[np.float64]:
        """Inner products of the counts, ``(n, m)``; the Gram matrix for one list of texts."""
        names: dict[Hashable, int] = {}
        left = self._matrix(A, names)
        right = left if B is None else self._matrix(B, names)
        left.resize((left.shape[0], len(names)))
        right.resize((right.shape[0], len(names)))
        out: NDArray[np.float64] = np.asarray((left @ right.T).todense(), dtype=np.float64)
        if self.normalize:
            norms = [np.asarray(m.multiply(m).sum(1)).ravel() for m in (left, right)]
            out = cosine(torch.from_numpy(out), *map(torch.from_numpy, norms)).numpy()
        return out

    def diag(self, A: Sequence[Text]) -> NDArray[np.float64]:
        r""":math:`k(x, x) = \|\varphi(x)\|^2`, ``(n,)``."""
        found = np.array([sum(c * c for c in Counter(self.pieces(t)).values()) for t in A], float)
        return (found > 0).astype(float) if self.normalize else found

    def _matrix(self, texts: Sequence[Text], names: dict[Hashable, int]) -> Any:
        from scipy.sparse import csr_matrix

        rows, columns, values = [], [], []
        for i, text in enumerate(texts):
            for piece, count in Counter(self.pieces(text)).items():
                rows.append(i)
                columns.append(names.setdefault(piece, len(names)))
                values.append(float(count))
        return csr_matrix((values, (rows, columns)), shape=(len(texts), len(names)))


@dataclass(frozen=True)
class BagOfWords(_Counts):
    r""":math:`k(s, t) = \sum_w \#_w(s)\,\#_w(t)`: words in common, with their counts.

    Parameters
    ----------
    lowercase : count words without regard to case
    normalize : divide by the lengths of the counts, so that :math:`k(s, s) = 1`

    Examples
    --------
    >>> BagOfWords()(["the cat sat", "the the dog"]).tolist()
    [[3.0, 2.0], [2.0, 5.0]]
    """

    lowercase: bool = True
    normalize: bool = False

    def pieces(self, text: Text) -> Iterable[Hashable]:
        if not isinstance(text, str):
            return [t.lower() if self.lowercase else t for t in text]
        return WORD.findall(text.lower() if self.lowercase else text)


@dataclass(frozen=True)
class Spectrum(_Counts):
    r""":math:`k(s, t) = \sum_u \#_u(s)\,\#_u(t)` over all strings u of k letters, or of k tokens
    where texts are lists of tokens.

    Parameters
    ----------
    k : letters (tokens) of a piece
    normalize : divide by the lengths of the counts, so that :math:`k(s, s) = 1`

    Examples
    --------
    >>> Spectrum(2)(["abab", "ab"]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """

    k: int = 3
    normalize: bool = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"a piece needs at least one letter, got k={self.k}")

    def pieces(self, text: Text) -> Iterable[Hashable]:
        whole: Any = text if isinstance(text, str) else tuple(text)
        return (whole[i : i + self.k] for i in range(len(whole) - self.k + 1))


def cosine(K: Tensor, left: Tensor, right: Tensor) -> Tensor:
    r""":math:`K_{ij}/\sqrt{l_ir_j}`, and 0 where one of them is 0."""
    size = (left[:, None] * right).clamp(min=0).sqrt()
    return torch.where(size > 0, K / torch.where(size > 0, size, 1.0), 0.0)


@dataclass(frozen=True)
class PsdReport:
    """Whether a matrix is a Gram matrix: symmetric, with no eigenvalue below zero."""

    least: float
    largest: float
    asymmetry: float
    is_psd: bool


def check_psd(K: Any, tol: float = 1e-10) -> PsdReport:
    """The least and the largest eigenvalue of a matrix, and whether it can be a Gram matrix.

    Examples
    --------
    >>> check_psd([[1.0, 2.0], [2.0, 1.0]]).least
    -1.0
    """
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"a Gram matrix is square, got shape {K.shape}")
    values = np.linalg.eigvalsh(0.5 * (K + K.T))
    least, largest = float(values[0]), float(values[-1])
    asymmetry = float(np.abs(K - K.T).max())
    size = max(abs(least), abs(largest), 1e-300)
    return PsdReport(least, largest, asymmetry, least >= -tol * size and asymmetry <= tol * size)
