r"""The weight line: the one source of random choices about rows.

Rows lie on a line in the order of a hash of their content, row i taking an interval as long as its
weight :math:`w_i`; draws and cuts are points on :math:`[0, \sum_i w_i)`. Hence a weight of 2 is the
row twice, rows may come in any order, in chunks or in shards, and every choice stays the same.

Lengths are integers in units of :math:`2^{-s}` (52 bits for the whole line), so that sums are exact
in any order. Give every choice a key of its own, ``key.fold("bootstrap", tree)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from groundstate.compute.random import U64, Key, mix64
from groundstate.compute.reduce import Reduce
from groundstate.compute.weight_line import cuts
from groundstate.compute.weight_line.batches import Batches
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.layout import F64, I64, Layout, checked, loops
from groundstate.errors import DataError

_WINDOW = 50  # batches within which rows are sorted by size
_DUST = 16  # a last batch shorter than 2^-16 of a batch is rounding, not data


class WeightLine:
    r"""Rows in canonical order, each with an interval as long as its weight.

    Parameters
    ----------
    hash : array of uint64, (N,)
        The content of each row, from `row_hash`. Rows of equal hash are one row given in parts.
    weights : array, (N,), optional
        Finite and not negative; one each when left out. A row of weight zero is on no side of any
        cut and in no draw.

    Attributes
    ----------
    n_rows, n_distinct : int
        Rows of the table (N), and rows of different content (G).
    total : float
        The length of the line, the sum of the weights.
    weights : array, (N,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(4.0)[:, None]
    >>> weighted = WeightLine.of(X, weights=np.array([1.0, 2.0, 0.0, 1.0]))
    >>> repeated = WeightLine.of(X[[1, 3, 0, 1]])
    >>> key = Key.of(0)
    >>> w, r = weighted.bootstrap(key), repeated.bootstrap(key)
    >>> bool(w[1] == r[0] + r[3]), bool(w[3] == r[1]), bool(w[0] == r[2])
    (True, True, True)
    """

    def __init__(self, hash: U64, weights: ArrayLike | Tensor | None = None) -> None:
        self._at = Layout(hash, weights)
        self.n_rows = len(self._at.order)
        self.n_distinct = len(self._at.groups)
        self.weights = self._at.weights
        self.total = self._at.total * self._at.quantum

    @classmethod
    def of(
        cls, *columns: Any, weights: ArrayLike | Tensor | None = None, seed: int = 0
    ) -> WeightLine:
        """The line of a table: ``WeightLine.of(X, y, weights=w)`` hashes and builds."""
        return cls(row_hash(*columns, seed=seed), weights)

    @classmethod
    def gathered(
        cls, hash: U64, weights: ArrayLike | Tensor | None, reduce: Reduce
    ) -> tuple[WeightLine, slice]:
        """The line of all shards, and where this shard's rows are in it.

        Every rank calls this with the hashes and weights of its own rows (either all ranks give
        weights or none does). Only those 16 bytes per row travel. All ranks get the same line, so
        a draw is the same row everywhere and each rank keeps the part of the answer in its slice.
        """
        own = torch.from_numpy(np.ascontiguousarray(hash, dtype=np.uint64).view(np.int64))
        everyone = reduce.gather(own).numpy().view(np.uint64)
        sizes = reduce.gather(torch.tensor([len(own)])).tolist()
        if weights is not None:
            mine = torch.from_numpy(checked(weights, len(own), "weights"))
            weights = reduce.gather(mine).numpy()
        start = sum(sizes[: reduce.rank])
        return cls(everyone, weights), slice(start, start + len(own))

    def order(self, key: Key) -> I64:
        """All rows in the order of this key; rows of equal content stand together.  # (N,)"""
        return self._at.order[self._at.expand(self._at.shuffled(key))]

    def batches(
        self,
        key: Key,
        batch_size: float,
        device: torch.device | str | None = None,
        *,
        sizes: I64 | None = None,
    ) -> Batches:
        r"""Cut the line, re-ordered by the key, every ``batch_size`` units of weight.

        Equal rows are merged into one entry, and a row that straddles a cut is in both batches
        with the parts of its weight, so a repeated table and its weighted twin give the same
        batches to the last bit.

        Parameters
        ----------
        key : Key
            One per epoch, for example ``key.fold("epoch", 3)``.
        batch_size : float
            Weight per batch; with weights of one, rows per batch.
        device : torch.device or str, optional
            Where the indices and weights are wanted.
        sizes : array of int64, (N,), optional
            Of the rows, such as the lengths of sequences: a batch then holds rows of about the same
            size, sorted within 50 batches; the batches come in random order.
        """
        if not batch_size > 0:
            raise DataError(f"batch_size={batch_size}; it must be a positive amount of weight.")
        at, to = self._at, torch.device("cpu" if device is None else device)
        if sizes is None and self.slices(batch_size):
            return Batches.slices(at.shuffled_rows([key], to)[0], int(batch_size))
        size = min(float(batch_size), 2.0 * self.total)
        step = max(1, int(at.integer(np.array([size]))[0]))
        n_cells = max(1, -(-(at.total - (step >> _DUST)) // step))
        order = at.shuffled(key) if sizes is None else at.bucketed(key, sizes, _WINDOW * step)
        rows, weights, offsets = loops(self.n_distinct).cut_pieces(
            order, *at.pieces, step, n_cells, at.quantum
        )
        made = Batches.ragged(rows, weights, offsets, to)
        if sizes is None:
            return made
        return made.reordered(key.fold("buckets").numpy().permutation(len(made)).tolist())

    def slices(self, batch_size: float) -> bool:
        """Whether batches of so much weight are slices of a permutation."""
        return self._at.unit and self._at.unique and float(batch_size).is_integer()

    def orders(self, keys: Sequence[Key], device: torch.device) -> Tensor:
        """The permutations that `batches` slices, of many keys at once.  # (S, N)"""
        return self._at.shuffled_rows(keys, device)

    def cut(
        self,
        key: Key,
        fractions: float | Sequence[float],
        *,
        stratify: ArrayLike | None = None,
        whole: bool = True,
    ) -> F64:
        r"""Cut the re-ordered line into parts with the given shares of the weight.

        Parameters
        ----------
        key : Key
        fractions : float or sequence of float
            Shares that sum to one; a single ``f`` stands for ``(1 - f, f)``.
        stratify : array, (N,), optional
            Labels; each label is a line of its own, cut in the same shares.
        whole : bool, default True
            Move each cut to the nearest end of a group of equal rows, so that no content is in two
            parts. False cuts exactly, and the straddling row counts fractionally on both sides.

        Returns
        -------
        array, (parts, N)
            The weight of each row in each part; the parts sum to the weights.
        """
        inner = [float(s) for s in np.cumsum(cuts.shares(fractions))[:-1]]
        return self._parts(key, lambda n: [round(s * n) for s in inner], stratify, whole)

    def folds(
        self, key: Key, k: int, *, stratify: ArrayLike | None = None, whole: bool = True
    ) -> F64:
        """Training weights of k folds: zero where a row is held out.  # (k, N)

        ``line.weights - folds`` are the held-out weights.
        """
        live = int(np.count_nonzero(self._at.groups))
        if k < 2 or (whole and k > live):
            raise DataError(f"k={k} folds of {live} different rows; choose 2 <= k <= {live}.")
        held = self._parts(key, lambda n: [n * i // k for i in range(1, k)], stratify, whole)
        return np.where(held == self.weights, 0.0, self.weights - held)

    def subsample(self, key: Key, fraction: float) -> F64:
        """Weights of a share of the line drawn without replacement.  # (N,)"""
        if not 0.0 < fraction <= 1.0:
            raise DataError(f"fraction={fraction}; it must be above 0 and at most 1.")
        part: F64 = self._parts(key, lambda n: [round(fraction * n)], None, False)[0]
        return part

    def bootstrap(self, key: Key, n_draws: int | None = None) -> I64:
        """How often each row is hit by points drawn on the line.  # (N,)

        ``n_draws`` is the total weight, rounded, unless given.
        """
        n = max(1, round(self.total)) if n_draws is None else n_draws
        return np.bincount(self.draw(key, n), minlength=self.n_rows)

    def draw(self, key: Key, n: int, *, distinct: bool = False) -> I64:
        """The rows under n points of the line; the first draws do not depend on n.  # (n,)

        With ``distinct`` no content is drawn twice: each draw is from what is left of the line.
        """
        at = self._at
        if not distinct:
            words: U64 = loops(n).key_words(np.uint64(key.high), np.uint64(key.low), n)
            return at.order[at.locate(words)]
        live = np.flatnonzero(at.groups)
        if n > len(live):
            raise DataError(
                f"{n} distinct rows were asked for, but only {len(live)} different rows have "
                "positive weight; ask for fewer."
            )
        # Exponential race: the n earliest arrivals are n successive draws without replacement.
        uniform = (mix64(at.hash[live] ^ np.uint64(key.low)) >> np.uint64(11)) * 2.0**-53
        arrival = -np.log1p(-uniform) / at.groups[live]
        return at.rows[live[np.argsort(arrival, kind="stable")[:n]]]

    @property
    def quantum(self) -> float:
        """The unit of lengths on the line."""
        return self._at.quantum

    @property
    def hash(self) -> U64:
        """The hashes of the contents, ascending.  # (G,)"""
        return self._at.hash

    @property
    def contents(self) -> tuple[I64, I64]:
        """One row of each content in the order of the line, and how much of the line is theirs."""
        return self._at.rows, self._at.groups

    def weighted_draw(
        self, key: Key, extra: ArrayLike | Tensor, n: int = 1, *, start: int = 0
    ) -> I64:
        r"""Rows under n points of the line with lengths :math:`w_i \cdot extra_i`.  # (n,)

        Equal rows must have equal ``extra`` (k-means++: squared distances). When every length is
        zero the points fall on the plain line. The points are the key's from ``start`` on.
        """
        lengths = checked(extra, self.n_rows, "extra")[self._at.rows] * self._at.groups
        ends = np.cumsum(lengths)
        if not 0.0 < ends[-1] < math.inf:
            return self.draw(key, start + n)[start:]
        found = np.searchsorted(ends, key.uniform(start + n)[start:] * ends[-1], side="right")
        return self._at.rows[np.minimum(found, np.flatnonzero(lengths)[-1])]

    def _parts(self, key: Key, places: cuts.Places, stratify: ArrayLike | None, whole: bool) -> F64:
        at, groups = self._at, self._at.shuffled(key)
        segments = [groups]
        if stratify is not None:
            segments = cuts.segments(groups, cuts.group_labels(stratify, at.order, at.bounds))
        snap = cuts.Snap(several=len(segments) > 1)
        out = np.zeros((len(places(0)) + 1, self.n_rows))
        for segment in segments:
            lengths = at.groups[segment]
            marks = places(int(lengths.sum()))
            if whole:
                marks = snap(lengths, marks)
            position = at.expand(segment)
            rows, full = at.order[position], at.lengths[position]
            if whole and at.unique:  # cuts lie between rows
                at_ends = np.searchsorted(np.cumsum(full), marks, side="right")
                for held, inside in zip(out, np.split(rows, at_ends), strict=True):
                    held[inside] = self.weights[inside]
                continue
            part = cuts.overlap(full, marks)  # (parts, rows)
            out[:, rows] = np.where(part == full, self.weights[rows], part * at.quantum)
        return out
