r"""The weight line of rows on a device: hashed, ordered and drawn from there.

The same line as :class:`~groundstate.compute.weight_line.line.WeightLine`: hashes, order and lengths
agree bit for bit, so a draw is the same row on the CPU and on an accelerator. Only the words of a key,
a few numbers, are made on the host.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import GOLDEN, Key
from groundstate.compute.reduce import Reduce
from groundstate.compute.weight_line.hashing import column_keys, hash_start
from groundstate.compute.weight_line.hashing_torch import _signed, mix64_torch, tensor_sum
from groundstate.compute.weight_line.layout import BITS, SMALLEST
from groundstate.compute.weight_line.reference import scaled
from groundstate.errors import DataError, ShapeError

_SIGN = -(1 << 63)


def tensor_hash(*columns: Tensor | None, seed: int = 0) -> Tensor:
    """`row_hash` as int64 that carry the bits of the unsigned words, on the device of the rows.

    >>> import torch
    >>> from groundstate.compute.weight_line.hashing import row_hash
    >>> X = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> bool((tensor_hash(X).numpy().view("uint64") == row_hash(X)).all())
    True
    """
    start = hash_start(seed)
    parts = [
        tensor_sum(column, column_keys(start, position))
        for position, column in enumerate(columns)
        if column is not None
    ]
    if not parts:
        raise DataError("tensor_hash got no columns; pass at least one tensor of rows.")
    if len({len(part) for part in parts}) > 1:
        raise ShapeError(
            f"tensor_hash got columns of {[len(part) for part in parts]} rows; pass one entry per row."
        )
    total = torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]
    return mix64_torch(total + _signed(start ^ GOLDEN))


class TensorLine:
    """Rows of a device in canonical order, each with an interval as long as its weight.

    Parameters
    ----------
    hash : Tensor of int64, (N,), from `tensor_hash`
    weights : Tensor, (N,), or None for ones

    Attributes
    ----------
    rows : Tensor, (G,)
        One row of each content in the order of the line, of positive weight where there is one.
    lengths : Tensor of int64, (G,)
        How much of the line is theirs, in units that add up exactly.

    Examples
    --------
    >>> import torch
    >>> from groundstate.compute.weight_line.line import WeightLine
    >>> X = torch.arange(6.0)[:, None]
    >>> key = Key.of(0)
    >>> TensorLine(tensor_hash(X)).draw(key, 4).tolist() == WeightLine.of(X).draw(key, 4).tolist()
    True
    """

    def __init__(self, hash: Tensor, weights: Tensor | None = None) -> None:
        n = len(hash)
        total = float(n) if weights is None else float(weights.double().sum())
        if not SMALLEST < total < math.inf:
            raise DataError(
                f"the weights of {n} rows sum to {total}; "
                "a weight line needs a finite sum and at least one row of positive weight."
            )
        self.unit = weights is None or bool((weights == 1).all())
        scale = BITS - math.frexp(total)[1]
        ordered, order = torch.sort(hash ^ _SIGN, stable=True)  # as unsigned words
        self.order = order
        new = torch.ones(n, dtype=torch.bool, device=hash.device)
        new[1:] = ordered[1:] != ordered[:-1]
        first = new.nonzero().flatten()
        self.hash = ordered[first] ^ _SIGN  # (G,)
        if weights is None:
            each = torch.full((n,), 1 << scale, dtype=torch.int64, device=hash.device)
        else:  # a power of two: exact
            each = torch.round(weights.double() * math.ldexp(1.0, scale)).long()[order]
        self._ends = each.cumsum(0)
        upto = self._ends[torch.cat([first[1:], first.new_tensor([n])]) - 1]
        self.lengths = torch.diff(upto, prepend=upto.new_zeros(1))
        if len(first) < n and not self.unit:  # the first of each content that has a weight
            live = each.nonzero().flatten()
            found = torch.searchsorted(live, first)
            at = live[found.clamp(max=max(0, len(live) - 1))]
            inside = (found < len(live)) & (at < torch.cat([first[1:], first.new_tensor([n])]))
            first = torch.where(inside, at, first)
        self.rows = order[first]

    @classmethod
    def gathered(
        cls, hash: Tensor, weights: Tensor | None, reduce: Reduce
    ) -> tuple[TensorLine, slice]:
        """The line of all shards, and where this shard's rows are in it."""
        everyone = reduce.gather(hash)
        sizes = reduce.gather(hash.new_tensor([len(hash)])).tolist()
        start = sum(sizes[: reduce.rank])
        if weights is not None:
            weights = reduce.gather(weights.double())
        return cls(everyone, weights), slice(start, start + len(hash))

    def draw(self, key: Key, n: int, *, distinct: bool = False) -> Tensor:
        """The rows under n points of the line; with ``distinct`` no content twice.  # (n,)"""
        if not distinct:
            total = len(self.order) if self.unit else int(self._ends[-1])
            places = torch.from_numpy(scaled(key.words(n), total)).to(self.order.device)
            if not self.unit:
                places = torch.searchsorted(self._ends, places, right=True)
            return self.order[places]
        live = self.lengths.nonzero().flatten()
        if n > len(live):
            raise DataError(
                f"{n} distinct rows were asked for, but only {len(live)} different rows have "
                "positive weight; ask for fewer."
            )
        uniform = _uniform(mix64_torch(self.hash[live] ^ _signed(key.low)))
        arrival = -torch.log1p(-uniform) / self.lengths[live]
        return self.rows[live[torch.sort(arrival, stable=True).indices[:n]]]

    def weighted_draw(self, extra: Tensor, uniform: Tensor) -> Tensor:
        r"""Rows under the points ``uniform`` of the line with lengths :math:`w_i\,extra_i`.

        Equal rows must have equal ``extra`` (N,), and one of the lengths must be positive.
        """
        lengths = extra[self.rows] * self.lengths
        ends = lengths.cumsum(0)
        found = torch.searchsorted(ends, uniform * ends[-1], right=True)
        last = torch.where(lengths > 0, torch.arange(len(ends), device=ends.device), 0).max()
        return self.rows[torch.minimum(found, last)]

    @staticmethod
    def content_uniform(hash: Tensor, key: Key, k: int) -> Tensor:
        """Uniform numbers that depend on the content of a row alone, ``(N, k)``."""
        words = torch.from_numpy(key.words(k).view(np.int64)).to(hash.device)
        return _uniform(mix64_torch(hash[:, None] ^ words))


def _uniform(words: Tensor) -> Tensor:
    return ((words >> 11) & ((1 << 53) - 1)).double() * 2.0**-53
