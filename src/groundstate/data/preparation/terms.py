"""Free text as text: words, pairs of words and pieces of words, weighed by how rare they are."""

from __future__ import annotations

import base64
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl
import scipy.sparse
from numpy.typing import NDArray

from groundstate.data.preparation.encoders import Floats

Ints = NDArray[np.int64]

SHORT = 100
"""Texts of at most this many characters on average are also read by pieces of their words."""

LENGTH = 3.0
"""Length of a row of words, and of pieces: a penalty on weights sees texts beside numbers of unit spread."""

PAIRED = 1.5
"""Length of a row of pairs, which are many and rare: the penalty trusts each less than a word."""

_LONG_WORD = 12  # mean letters of a "word", above which the script does not part its words
TWICE = 2.0  # weight of texts that a pair, a piece or a numbered word must be in
_MOST = {"words": 200_000, "pairs": 200_000, "pieces": 200_000}
_SIZES = (2, 3, 4, 5)  # of pieces, which keep inside a word with a blank on either side
_NONE = pl.Series("pieces", [], dtype=pl.String)
_KEPT = 4  # results that are remembered: candidates of one fold ask for the same


@dataclass(frozen=True, eq=False)
class Terms:
    r"""Free text: :math:`a_{dt} = (1 + \ln \mathrm{tf}_{dt})\,(1 + \ln\frac{1+N}{1+n_t})`, each
    row of one length, as a sparse matrix.

    Terms are the words; pairs of neighbouring words, a block of half their length; of short texts,
    and where a script parts no words, also pieces of two to five characters within words, a third
    block as long as the first. :math:`n_t` of N texts hold term t, both by weight. Pairs and pieces
    are in texts of a total weight of at least two. Unseen terms are left out.

    Attributes
    ----------
    words : the W words, sorted
    pairs : (P, 2) numbers of the words of each pair
    pieces : the G pieces, sorted
    rarity : (W + P + G,) the second factor
    """

    kind: ClassVar[str] = "terms"
    words: pl.Series = field(repr=False)
    pairs: Ints = field(repr=False)
    pieces: pl.Series = field(repr=False)
    rarity: Floats = field(repr=False)

    @classmethod
    def fit_transform(
        cls, values: pl.Series, weights: Floats | None
    ) -> tuple[Terms, scipy.sparse.csr_array]:
        """Learn the terms of texts of positive weight, and count them in all."""
        return _remembered(("fit", values, weights), lambda: cls._learned(values, weights))

    @classmethod
    def _learned(
        cls, values: pl.Series, weights: Floats | None
    ) -> tuple[Terms, scipy.sparse.csr_array]:
        counts = np.ones(len(values)) if weights is None else weights
        texts = plain(values)
        whole = Tokens.of(texts, None, counts)
        tokens = whole.heaviest(counts, _MOST["words"])
        pairs = tokens.frequent_pairs(counts)
        pieces, blocks = _NONE, [tokens.counts(), tokens.paired(pairs)]
        if whole.short(texts, counts):
            pieces, spelled = whole.frequent_pieces(counts)
            blocks.append(spelled)
        holds = np.concatenate([holding(block, counts) for block in blocks])
        rarity = 1 + np.log((1 + counts.sum()) / (1 + holds))
        made = cls(tokens.words, pairs, pieces, rarity)
        return made, made._weighed(blocks)

    def transform(self, values: pl.Series) -> scipy.sparse.csr_array:
        """Weighed terms of texts, ``(n, W + P + G)``."""
        key = ("transform", values, self.rarity)
        return _remembered(key, lambda: self._weighed(self._blocks(plain(values))))

    def _blocks(self, texts: pl.Series) -> list[scipy.sparse.csr_array]:
        tokens = Tokens.of(texts, self.words)
        blocks = [tokens.counts(), tokens.paired(self.pairs)]
        if len(self.pieces):
            own = Tokens.of(texts, None)
            blocks.append((own.counts() @ _spelling(own.words, self.pieces)).tocsr())
        return blocks

    def _weighed(self, blocks: list[scipy.sparse.csr_array]) -> scipy.sparse.csr_array:
        """Counts as rows of one length, each kind of terms by itself."""
        out, at = [], 0
        for part, length in zip(blocks, (LENGTH, PAIRED, LENGTH), strict=False):
            width = part.shape[1]
            logged = 1 + np.log(part.data)
            data = logged * self.rarity[at : at + width][part.indices]
            rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
            norm = np.sqrt(np.bincount(rows, data * data, minlength=part.shape[0]))
            data *= length / np.where(norm > 0, norm, 1.0)[rows]
            out.append(scipy.sparse.csr_array((data, part.indices, part.indptr), part.shape))
            at += width
        return scipy.sparse.hstack(out, format="csr")

    def names(self, column: str) -> list[str]:
        words = self.words.to_list()
        named = [f"{column}: {word}" for word in words]
        named += [f"{column}: {words[a]} {words[b]}" for a, b in self.pairs.tolist()]
        return named + [f"{column}: …{piece}…" for piece in self.pieces.to_list()]

    def to_state(self) -> dict[str, Any]:
        return {
            "words": self.words.to_list(),
            "pairs": _packed(self.pairs, "<i8"),
            "pieces": self.pieces.to_list(),
            "rarity": _packed(self.rarity, "<f8"),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Terms:
        pairs = _unpacked(state["pairs"], "<i8").astype(np.int64).reshape(-1, 2)
        words, pieces = (pl.Series(k, state[k], dtype=pl.String) for k in ("words", "pieces"))
        return cls(words, pairs, pieces, _unpacked(state["rarity"], "<f8").astype(np.float64))


@dataclass(frozen=True, eq=False)
class Tokens:
    """Words of texts in their order: row and number of each; unknown words are -1.

    >>> tokens = Tokens.of(pl.Series(["red wine", "red red"]), pl.Series(["red", "wine"]))
    >>> tokens.counts().toarray().tolist()
    [[1.0, 1.0], [2.0, 0.0]]
    """

    words: pl.Series
    n: int
    row: Ints
    code: Ints

    @classmethod
    def of(
        cls,
        texts: pl.Series,
        words: pl.Series | None,
        counts: Floats | None = None,
        pattern: str = r"\w+",
    ) -> Tokens:
        """The words of texts; unless they are given, those of texts of positive weight."""
        lists = texts.str.extract_all(pattern)
        row = np.repeat(np.arange(len(texts)), lists.list.len().to_numpy())
        flat = lists.filter(lists.list.len() > 0).explode()
        if words is None:
            used = flat if counts is None else flat.filter(pl.Series(counts[row] > 0))
            words = used.unique().sort().alias("words")
        if not len(words) or not len(flat):
            return cls(words, len(texts), row, np.full(len(row), -1, np.int64))
        codes = flat.cast(pl.Enum(words), strict=False).to_physical().cast(pl.Int64)
        return cls(words, len(texts), row, codes.fill_null(-1).to_numpy())

    def heaviest(self, counts: Floats, most: int) -> Tokens:
        """With the words of the heaviest texts only, where there are too many to keep."""
        if len(self.words) <= most:
            return self
        weight = holding(self.counts(), counts)
        kept = np.sort(np.argsort(-weight, kind="stable")[:most])
        code = np.full(len(self.words) + 1, -1)  # the last stands for unknown words
        code[kept] = np.arange(len(kept))
        return Tokens(self.words.gather(kept), self.n, self.row, code[self.code])

    def short(self, texts: pl.Series, counts: Floats) -> bool:
        """Whether pieces of words pay: few characters, or no blanks between words."""
        letters = float((texts.str.len_chars().to_numpy() * counts).sum())
        words = float(counts[self.row].sum())
        return letters <= SHORT * counts.sum() or letters > _LONG_WORD * max(1.0, words)

    def counts(self) -> scipy.sparse.csr_array:
        """How often each word comes in each text.  # (n, W)"""
        known = self.code >= 0
        return _table(self.row[known], self.code[known], (self.n, len(self.words)))

    def _pairs(self) -> tuple[Ints, Ints]:
        a, b = self.code[:-1], self.code[1:]
        near = (self.row[:-1] == self.row[1:]) & (a >= 0) & (b >= 0)
        return self.row[:-1][near], a[near] * len(self.words) + b[near]

    def frequent_pairs(self, counts: Floats) -> Ints:
        """Neighbours in texts of a total weight of two or more, as numbers of words.  # (P, 2)"""
        row, pair = self._pairs()
        found = pl.DataFrame({"pair": pair, "w": counts[row], "row": row})
        several = found.group_by("pair").agg(pl.col("w").sum()).filter(pl.col("w") >= TWICE)
        found = found.join(several.select("pair"), on="pair", how="semi").unique(["pair", "row"])
        heavy = found.group_by("pair").agg(pl.col("w").sum()).filter(pl.col("w") >= TWICE)
        top = heavy.sort("w", "pair", descending=[True, False]).head(_MOST["pairs"])["pair"]
        kept = np.sort(top.to_numpy())
        width = max(1, len(self.words))
        return np.stack([kept // width, kept % width], axis=1).astype(np.int64)

    def paired(self, pairs: Ints) -> scipy.sparse.csr_array:
        """How often each pair comes in each text.  # (n, P)"""
        row, pair = self._pairs()
        wanted = pairs[:, 0] * len(self.words) + pairs[:, 1]  # ascending
        shape = (self.n, len(wanted))
        if not len(wanted) or not len(pair):
            return scipy.sparse.csr_array(shape)
        at = np.minimum(np.searchsorted(wanted, pair), len(wanted) - 1)
        hit = wanted[at] == pair
        return _table(row[hit], at[hit], shape)

    def frequent_pieces(self, counts: Floats) -> tuple[pl.Series, scipy.sparse.csr_array]:
        """Pieces of words in texts of a total weight of two or more, and their counts."""
        held = self.counts()
        every = _cut(self.words)["piece"].unique().sort()
        table = (held @ _spelling(self.words, every)).tocsr()
        weight = holding(table, counts)
        kept = np.flatnonzero(weight >= TWICE)
        kept = np.sort(kept[np.argsort(-weight[kept], kind="stable")[: _MOST["pieces"]]])
        return every.gather(kept).alias("pieces"), table[:, kept].tocsr()


def plain(values: pl.Series) -> pl.Series:
    """Texts in small letters, empty where they are missing."""
    return values.cast(pl.String).fill_null("").str.to_lowercase().alias("text")


def _cut(words: pl.Series) -> pl.DataFrame:
    """The pieces of each word, with repetition: its number and the piece."""
    padded = pl.DataFrame({"word": np.arange(len(words)), "text": " " + words + " "})
    longest = int(padded["text"].str.len_chars().max() or 0)  # type: ignore[arg-type]
    out = [pl.DataFrame(schema={"word": pl.Int64, "piece": pl.String})]
    for size in _SIZES:
        for start in range(longest - size + 1):
            fits = padded.filter(pl.col("text").str.len_chars() >= start + size)
            out.append(fits.select("word", piece=pl.col("text").str.slice(start, size)))
    return pl.concat(out)


def _spelling(words: pl.Series, pieces: pl.Series) -> scipy.sparse.csr_array:
    """How often each piece comes in each word.  # (W, G)"""
    shape = (len(words), len(pieces))
    if not len(words) or not len(pieces):
        return scipy.sparse.csr_array(shape)
    cut = _cut(words)
    code = cut["piece"].cast(pl.Enum(pieces), strict=False).to_physical().cast(pl.Int64)
    known = code.is_not_null()
    return _table(cut["word"].filter(known).to_numpy(), code.filter(known).to_numpy(), shape)


def _table(row: Ints, column: Ints, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """Counts of (row, column)."""
    at = (row.astype(np.int32), column.astype(np.int32))  # scikit-learn takes no longer ones
    made = scipy.sparse.coo_array((np.ones(len(row)), at), shape).tocsr()
    made.sort_indices()
    return made


def holding(table: scipy.sparse.csr_array, counts: Floats) -> Floats:
    """Weight of the rows that hold each column."""
    row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    return np.bincount(table.indices, counts[row], minlength=table.shape[1]).astype(np.float64)


_MEMORY: OrderedDict[bytes, Any] = OrderedDict()


def _remembered(key: tuple[str, pl.Series, Floats | None], make: Callable[[], Any]) -> Any:
    """A result of the last few questions, found by the content of texts and numbers."""
    what, values, numbers = key
    digest = hashlib.blake2b(what.encode(), digest_size=16)
    digest.update(values.hash(1).to_numpy().tobytes())
    digest.update(values.hash(2).to_numpy().tobytes())
    digest.update(b"" if numbers is None else np.ascontiguousarray(numbers).tobytes())
    name = digest.digest()
    if name in _MEMORY:
        _MEMORY.move_to_end(name)
        return _MEMORY[name]
    made = make()
    _MEMORY[name] = made
    while len(_MEMORY) > _KEPT:
        _MEMORY.popitem(last=False)
    return made


def _packed(values: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype).tobytes()).decode()


def _unpacked(text: str, dtype: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype)
