"""Where rows lie on the weight line: canonical order, groups of equal rows, integer lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from types import ModuleType

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from groundstate.compute.random import U64, Key
from groundstate.compute.weight_line import reference
from groundstate.errors import DataError, ShapeError

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

BITS = 52  # of the length of the whole line: every piece of it is exact in float64
SMALLEST = 1e-300  # below this total the units of the line would underflow
_FEW = 4096


class Layout:
    """Rows in the order of their hash, with lengths in units that add up exactly in any order.

    Parameters
    ----------
    hash : array of uint64, (N,)
    weights : array, (N,), or None for ones

    Attributes
    ----------
    order : array, (N,)
        Rows in canonical order; equal rows stand together as one of G groups.
    bounds : array, (G + 1,)
        Where each group begins in ``order``.
    lengths : array of int64, (N,)
        Length of each row in canonical order, in units of ``quantum``.
    groups : array of int64, (G,)
        Length of each group.
    rows : array, (G,)
        One row of each group, of positive weight where there is one.
    """

    def __init__(self, hash: U64, weights: ArrayLike | Tensor | None) -> None:
        hash = np.ascontiguousarray(hash, dtype=np.uint64)
        n = len(hash)
        self.weights = np.ones(n) if weights is None else checked(weights, n, "weights")
        self.unit = weights is None or bool((self.weights == 1.0).all())
        total = float(n) if self.unit else float(self.weights.sum())
        if not SMALLEST < total < math.inf:
            raise DataError(
                f"the weights of {n} rows sum to {total}; "
                "a weight line needs a finite sum and at least one row of positive weight."
            )
        self.scale = BITS - math.frexp(total)[1]
        self.quantum = math.ldexp(1.0, -self.scale)
        self.order: I64 = loops(n).stable_order(hash, _bits(n))
        ordered = hash[self.order]
        new = np.ones(n + 1, dtype=bool)
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:n])
        self.bounds: I64 = np.flatnonzero(new)
        self.unique = len(self.bounds) == n + 1
        self.hash: U64 = ordered[self.bounds[:-1]]  # (G,)
        if self.unit:
            self.lengths = np.full(n, 1 << self.scale)
            self.groups: I64 = np.diff(self.bounds) << self.scale
        else:
            self.lengths = self.integer(self.weights)[self.order]
            self.groups = np.add.reduceat(self.lengths, self.bounds[:-1])
        self.total = int(self.groups.sum())
        self.rows = self._representatives()
        self._on_device: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def integer(self, weights: F64) -> I64:
        """Weights in units of the line."""
        return np.rint(np.ldexp(weights, self.scale)).astype(np.int64)

    def shuffled(self, key: Key) -> I64:
        """The groups in the order of mix64(hash ^ key).  # (G,)"""
        n = len(self.groups)
        order: I64 = loops(n).keyed_order(self.hash, np.uint64(key.low), _bits(n))
        return order

    def bucketed(self, key: Key, sizes: I64, span: int) -> I64:
        """The groups of `shuffled`, by the size of their rows within every ``span`` units of length.

        Groups of one size stay in the order of the key.  # (G,)
        """
        order = self.shuffled(key)
        lengths = self.groups[order]
        part = (np.cumsum(lengths) - lengths) // span
        return order[np.lexsort((sizes[self.rows[order]], part))]

    def shuffled_rows(self, keys: Sequence[Key], device: torch.device) -> Tensor:
        """The representatives in the orders of `shuffled`, sorted where they are wanted.  # (S, G)"""
        if device.type == "cpu":
            return torch.from_numpy(np.stack([self.rows[self.shuffled(key)] for key in keys]))
        from groundstate.compute.weight_line.hashing_torch import keyed_orders

        if device not in self._on_device:
            hashes = torch.from_numpy(self.hash.view(np.int64)).to(device)
            self._on_device[device] = hashes, torch.from_numpy(self.rows).to(device)
        hashes, rows = self._on_device[device]
        return rows[keyed_orders(hashes, [key.low for key in keys], _bits(len(rows)))]

    def expand(self, groups: I64) -> I64:
        """Canonical positions of all rows of these groups, group after group."""
        if self.unique:
            return groups
        count = np.diff(self.bounds)[groups]
        shift = self.bounds[groups] - (np.cumsum(count) - count)
        return np.repeat(shift, count) + np.arange(int(count.sum()))

    def locate(self, points: U64) -> I64:
        """Canonical positions of the rows under points ⌊u · total / 2^64⌋ of the line."""
        found: I64 = (
            loops(len(points)).scaled(points, len(self.order))
            if self.unit
            else loops(len(points)).locate(points, np.cumsum(self.lengths))
        )
        return found

    def _representatives(self) -> I64:
        if self.unique:
            return self.order
        if self.unit:
            return self.order[self.bounds[:-1]]
        first = self.bounds[:-1].copy()
        live = np.flatnonzero(self.lengths)
        at = np.searchsorted(live, first)
        ok = at < len(live)
        ok[ok] = live[at[ok]] < self.bounds[1:][ok]
        first[ok] = live[at[ok]]
        return self.order[first]

    @cached_property
    def pieces(self) -> tuple[I64, F64]:
        """What `cut_pieces` reads: lengths and rows (G, 2), and weights where units round them."""
        weights = self.weights[self.order]
        if not (self.unique or self.unit):
            # Ascending among equal rows, so that the sum does not see the order of the rows.
            group = np.repeat(np.arange(len(self.groups)), np.diff(self.bounds))
            weights = weights[np.lexsort((weights, group))]
        full = np.add.reduceat(weights, self.bounds[:-1])
        exact = bool((full == self.groups * self.quantum).all())
        return np.stack([self.groups, self.rows], axis=1), full[: 0 if exact else None]


def checked(weights: ArrayLike | Tensor, n: int, name: str) -> F64:
    """Finite, not negative, one per row, as float64.  # (n,)"""
    if isinstance(weights, Tensor):
        weights = weights.detach().cpu().numpy()
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise ShapeError(f"{name} has shape {array.shape}; expected one per row, ({n},).")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        i = int(np.argmax(bad))
        raise DataError(f"{name}[{i}] = {array[i]}; {name} must be finite and not negative.")
    return array


def _bits(n: int) -> int:
    """Bits that hold the positions 0 to n-1."""
    return max(1, (n - 1).bit_length())


def loops(n: int) -> ModuleType:
    """Compiled loops, or for few rows the same in NumPy, which needs no compiler."""
    if n <= _FEW:
        return reference
    from groundstate.compute.weight_line import line_numba as kernels

    return kernels
