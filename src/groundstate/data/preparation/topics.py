"""Free text as numbers: hashed words, weighed by how rare they are, along few directions."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl
import scipy.sparse
from numpy.typing import NDArray

from groundstate.data.preparation.encoders import Floats

_DENSE = 300  # smaller tables of words are decomposed exactly
_DOCUMENTS = 20_000  # distinct texts that the directions are learned from, at most
_ROUNDS, _SPARE = 4, 10  # of the randomised decomposition


@dataclass(frozen=True)
class Text:
    r"""Free text: :math:`a_{db} = \mathrm{tf}_{db}\,(1 + \ln\frac{1+N}{1+n_b})`, of unit length,
    along the first right singular vectors of :math:`\sqrt{w}\,A`.

    Words are hashed (CRC-32) into bins b, so that unseen ones are no trouble; :math:`n_b` of N
    texts hold a word of bin b. Learned from distinct texts with their total weight.

    Attributes
    ----------
    bins : number of hash bins
    seen : (S,) bins with a word in training
    rarity : (S,) the logarithms above
    directions : (S, k), float32
    """

    kind: ClassVar[str] = "text"
    bins: int
    seen: NDArray[np.int64] = field(repr=False)
    rarity: Floats = field(repr=False)
    directions: NDArray[np.float32] = field(repr=False)

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None, bins: int, size: int) -> Text:
        counts = np.ones(len(values)) if weights is None else weights
        texts = pl.DataFrame({"text": values.cast(pl.String).fill_null(""), "w": counts})
        texts = texts.filter(pl.col("w") > 0).group_by("text").agg(pl.col("w").sum()).sort("text")
        total = texts["w"].to_numpy()
        table = hashed_words(texts["text"], bins)
        seen = np.unique(table.indices).astype(np.int64)
        table = table[:, seen]
        holds = np.asarray((table > 0).T @ total).ravel()
        rarity = 1 + np.log((1 + total.sum()) / (1 + holds))
        some = np.arange(table.shape[0])
        if len(some) > _DOCUMENTS:  # those of the smallest hash: the same in any order of rows
            codes = [zlib.crc32(t.encode()) for t in texts["text"].to_list()]
            some = np.sort(np.argsort(codes, kind="stable")[:_DOCUMENTS])
        heavy = scipy.sparse.diags_array(np.sqrt(total[some])) @ _unit(table[some], rarity)
        return cls(bins, seen, rarity, leading(heavy.tocsr(), size).astype(np.float32))

    def transform(self, values: pl.Series) -> Floats:
        table = hashed_words(values.cast(pl.String).fill_null(""), self.bins)[:, self.seen]
        return np.asarray(_unit(table, self.rarity) @ self.directions.astype(np.float64))

    def names(self, column: str) -> list[str]:
        return [f"{column} topic {i + 1}" for i in range(self.directions.shape[1])]

    def to_state(self) -> dict[str, Any]:
        packed = np.ascontiguousarray(self.directions, "<f4").tobytes()
        return {
            "bins": self.bins,
            "seen": self.seen.tolist(),
            "rarity": self.rarity.tolist(),
            "size": int(self.directions.shape[1]),
            "directions": base64.b64encode(packed).decode(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Text:
        seen = np.array(state["seen"], np.int64)
        packed = np.frombuffer(base64.b64decode(state["directions"]), "<f4")
        directions = packed.astype(np.float32).reshape(len(seen), int(state["size"]))
        return cls(int(state["bins"]), seen, np.array(state["rarity"], np.float64), directions)


def hashed_words(texts: pl.Series, bins: int) -> scipy.sparse.csr_array:
    """How often each bin of words comes in each text.  # (n, bins)"""
    words = texts.str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+")
    table = pl.DataFrame({"row": np.arange(len(texts)), "word": words})
    counts = table.explode("word").drop_nulls().group_by(["row", "word"]).len()
    vocabulary = counts["word"].unique()
    hashes = np.array([zlib.crc32(w.encode()) % bins for w in vocabulary.to_list()], np.int64)
    found = counts.join(pl.DataFrame({"word": vocabulary, "bin": hashes}), on="word")
    found = found.group_by(["row", "bin"]).agg(pl.col("len").sum()).sort(["row", "bin"])
    rows, columns = found["row"].to_numpy(), found["bin"].to_numpy()
    values = found["len"].to_numpy().astype(np.float64)
    return scipy.sparse.csr_array((values, (rows, columns)), shape=(len(texts), bins))


def _unit(table: scipy.sparse.csr_array, rarity: Floats) -> scipy.sparse.csr_array:
    weighed = (table @ scipy.sparse.diags_array(rarity)).tocsr()
    norm = np.sqrt(np.asarray(weighed.multiply(weighed).sum(axis=1)).ravel())
    return (scipy.sparse.diags_array(1 / np.where(norm > 0, norm, 1.0)) @ weighed).tocsr()


def leading(matrix: scipy.sparse.csr_array, size: int) -> Floats:
    """The first right singular vectors, signs fixed; of large matrices by random projection.

    >>> leading(scipy.sparse.csr_array(np.diag([3.0, 2.0, 1.0])), 2).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    k = min(size, *matrix.shape)
    if not k:
        return np.zeros((matrix.shape[1], 0))
    if min(matrix.shape) <= _DENSE:
        right = _right(matrix.toarray())
    else:
        rng = np.random.default_rng(0)
        basis = rng.normal(size=(matrix.shape[1], min(k + _SPARE, *matrix.shape)))
        for _ in range(_ROUNDS):
            basis = np.linalg.qr(matrix.T @ np.linalg.qr(matrix @ basis)[0])[0]
        right = basis @ _right(np.asarray(matrix @ basis))
    right = right[:, :k]
    top = np.take_along_axis(right, np.abs(right).argmax(0)[None], 0)
    return right * np.where(top < 0, -1.0, 1.0)


def _right(dense: Floats) -> Floats:
    """Right singular vectors with a singular value above rounding.  # (columns, rank)"""
    _, values, right = np.linalg.svd(dense, full_matrices=False)
    return np.asarray(right[values > 1e-10 * max(values[0], 1e-300)].T)
