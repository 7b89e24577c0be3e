r"""Kernels on texts, and the check that a matrix is a Gram matrix at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(r"\b\w\w+\b")


class _Counts:
    """A kernel on texts whose feature map counts pieces of them."""

    def pieces(self, text: str) -> Iterable[str]:
        raise TypeError(f"{type(self).__name__} must say which pieces of a text it counts")

    def __call__(self, A: Sequence[str], B: Sequence[str] | None = None) -> NDArray[np.float64]:
        """Inner products of the counts, ``(n, m)``; the Gram matrix for one list of texts."""
        names: dict[str, int] = {}
        left = self._matrix(A, names)
        right = left if B is None else self._matrix(B, names)
        left.resize((left.shape[0], len(names)))
        right.resize((right.shape[0], len(names)))
        out: NDArray[np.float64] = np.asarray((left @ right.T).todense(), dtype=np.float64)
        return out

    def diag(self, A: Sequence[str]) -> NDArray[np.float64]:
        r""":math:`k(x, x) = \|\varphi(x)\|^2`, ``(n,)``."""
        return np.array([sum(c * c for c in Counter(self.pieces(t)).values()) for t in A], float)

    def _matrix(self, texts: Sequence[str], names: dict[str, int]) -> Any:
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

    Examples
    --------
    >>> BagOfWords()(["the cat sat", "the the dog"]).tolist()
    [[3.0, 2.0], [2.0, 5.0]]
    """

    lowercase: bool = True

    def pieces(self, text: str) -> Iterable[str]:
        return WORD.findall(text.lower() if self.lowercase else text)


@dataclass(frozen=True)
class Spectrum(_Counts):
    r""":math:`k(s, t) = \sum_u \#_u(s)\,\#_u(t)` over all strings u of k letters.

    Parameters
    ----------
    k : letters of a piece

    Examples
    --------
    >>> Spectrum(2)(["abab", "ab"]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """

    k: int = 3

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"a piece needs at least one letter, got k={self.k}")

    def pieces(self, text: str) -> Iterable[str]:
        return (text[i : i + self.k] for i in range(len(text) - self.k + 1))


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


__all__ = ["BagOfWords", "PsdReport", "Spectrum", "check_psd"]
