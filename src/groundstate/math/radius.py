r"""Rows within a radius, :math:`\{i : d(x, x_i) \le r\}`, found tile by tile and proved by differences.

In Euclidean distance one matrix product per tile gives :math:`\|x-z\|^2` up to a bounded rounding
error; every pair that could lie within the radius is then measured from its differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

QUERIES, ROWS = 256, 4096  # of one product
CELLS = 2**22  # numbers of one block of distances, or of one block of differences


@dataclass(frozen=True)
class Ragged:
    """Rows found for each query, one query after the other."""

    count: Tensor  # (q,) int64
    index: Tensor  # (count.sum(),) int64, increasing within a query
    distance: Tensor  # (count.sum(),) float64


def within(x: Tensor, rows: Tensor, radius: float, tree: Any = None) -> Ragged:
    """The rows at most ``radius`` away in Euclidean distance.

    Parameters
    ----------
    x : queries, ``(q, d)``
    rows : ``(n, d)``
    radius : a row at exactly this distance belongs to them
    tree : a scipy ``KDTree`` of the rows, which then proposes the candidates

    Examples
    --------
    >>> found = within(torch.tensor([[0.0], [5.0]]), torch.tensor([[1.0], [-1.0], [3.0]]), 1.0)
    >>> found.count.tolist(), found.index.tolist()
    ([2, 0], [0, 1])
    """
    proposed = _by_tree(x, tree, radius) if tree is not None else _by_products(x, rows, radius)
    return _joined((_measured(x, rows, pairs, radius) for pairs in proposed), x)


def within_by(
    every: Callable[[Tensor], Tensor], x: Tensor, n: int, radius: float, cells: int = CELLS
) -> Ragged:
    """The same for any distance: ``every(part)`` gives those of some queries to all n rows."""

    def pieces() -> Iterable[tuple[Tensor, Tensor, Tensor]]:
        step = max(1, cells // max(1, n))
        for at in range(0, len(x), step):
            table = every(x[at : at + step])
            query, row = (table <= radius).nonzero(as_tuple=True)
            yield query + at, row, table[query, row]

    return _joined(pieces(), x)


def _by_tree(x: Tensor, tree: Any, radius: float) -> Iterable[tuple[Tensor, Tensor]]:
    wide = radius * (1 + 1e-9)  # the differences decide at the edge
    for at in range(0, len(x), QUERIES):
        lists = tree.query_ball_point(x[at : at + QUERIES].numpy(), wide, return_sorted=True)
        count = torch.tensor([len(found) for found in lists])
        query = torch.arange(at, at + len(lists)).repeat_interleave(count)
        yield query, torch.tensor([i for found in lists for i in found], dtype=torch.int64)


def _by_products(x: Tensor, rows: Tensor, radius: float) -> Iterable[tuple[Tensor, Tensor]]:
    """Pairs that may be near, queries and rows each in increasing order."""
    origin = rows.mean(0, dtype=torch.float64)
    centred = rows.double() - origin
    size = centred.square().sum(1)
    sides: dict[torch.dtype, tuple[Tensor, Tensor]] = {}
    for at in range(0, len(x), QUERIES):
        about = x[at : at + QUERIES].double() - origin
        norm = about.square().sum(1)
        reach = (norm.sqrt() + size.max().sqrt()).square()  # of |x - z|² and all its terms
        error = (x.shape[1] + 8) * 2 * torch.finfo(torch.float32).eps * reach
        fine = (error <= 0.01 * radius * radius) & (reach < 1e37)
        level = torch.float32 if bool(fine.all()) else torch.float64
        if level is torch.float64:
            error = error * (torch.finfo(level).eps / torch.finfo(torch.float32).eps)
        if level not in sides:
            sides[level] = centred.to(level), size.to(level)
        left, (right, square) = about.to(level), sides[level]
        limit = (radius * radius * (1 + 1e-12) - norm + error).to(level)
        limit = limit + torch.finfo(level).eps * limit.abs()
        unknown = ~torch.isfinite(limit + 4 * reach)[:, None]  # beyond the largest number
        found = []
        for start in range(0, len(rows), ROWS):
            part = right[start : start + ROWS].T
            near = (
                torch.addmm(square[start : start + ROWS], left, part, alpha=-2.0) <= limit[:, None]
            )
            if bool(unknown.any()):
                near |= unknown
            query, row = near.nonzero(as_tuple=True)
            found.append((query, row + start))
        query, row = (torch.cat(side) for side in zip(*found, strict=True))
        order = query.sort(stable=True).indices
        yield query[order] + at, row[order]


def _measured(
    x: Tensor, rows: Tensor, pairs: tuple[Tensor, Tensor], radius: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of the proposed pairs those within the radius, with their distances."""
    step = max(1, CELLS // max(1, x.shape[1]))
    square = [
        (x[query].double() - rows[row].double()).square().sum(1)
        for query, row in zip(*(side.split(step) for side in pairs), strict=True)
    ]
    distance = torch.cat(square).sqrt()
    kept = distance <= radius
    return pairs[0][kept], pairs[1][kept], distance[kept]


def _joined(pieces: Iterable[tuple[Tensor, Tensor, Tensor]], x: Tensor) -> Ragged:
    query, row, distance = (torch.cat(side) for side in zip(*pieces, strict=True))
    return Ragged(torch.bincount(query, minlength=len(x)), row, distance)


__all__ = ["Ragged", "within", "within_by"]
