r"""Rows within a radius, :math:`\{i : d(x, x_i) \le r\}`, found tile by tile and proved by differences.

In Euclidean distance one matrix product per tile gives :math:`\|x-z\|^2` up to a bounded rounding
error; every pair that could lie within the radius is then measured from its differences. Where there
are few columns, a tree of boxes leaves out most pairs instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.math.neighbors import radius_numba as kernels
from groundstate.math.neighbors.nearest import NearestRows

QUERIES, ROWS = 256, 4096  # of one product
CELLS = 2**22  # numbers of one block of distances, or of one block of differences


@dataclass(frozen=True)
class Ragged:
    """Rows found for each query, one query after the other."""

    count: Tensor  # (q,) int64
    index: Tensor  # (count.sum(),) int64, increasing within a query
    distance: Tensor  # (count.sum(),) float64


def within(x: Tensor, rows: Tensor, radius: float, search: NearestRows | None = None) -> Ragged:
    """The rows at most ``radius`` away in Euclidean distance.

    Parameters
    ----------
    x : queries, ``(q, d)``
    rows : ``(n, d)``
    radius : a row at exactly this distance belongs to them
    search : what is known of the rows from earlier questions, on the CPU

    Examples
    --------
    >>> found = within(torch.tensor([[0.0], [5.0]]), torch.tensor([[1.0], [-1.0], [3.0]]), 1.0)
    >>> found.count.tolist(), found.index.tolist()
    ([2, 0], [0, 1])
    """
    if x.device.type == "cpu":
        return _on_host(x, NearestRows(rows.numpy()) if search is None else search, radius)
    proposed = _by_products(x, rows, radius)
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


def _on_host(x: Tensor, search: NearestRows, radius: float) -> Ragged:
    queries = np.ascontiguousarray(x.numpy(), dtype=search.rows.dtype)
    found: dict[int, Any] = {}
    divided = search.boxes if search.divides else None

    def block(lo: int, hi: int) -> None:
        if torch.get_num_threads() > 1:
            torch.set_num_threads(1)  # of this worker only
        part = queries[lo:hi]
        if divided is not None:
            rows, order, place, corner = divided
            found[lo] = kernels.ball(part, rows, order, place, corner, radius)
        else:
            found[lo] = _scanned(part, search, radius)

    search.over(block, [(lo, min(lo + QUERIES, len(x))) for lo in range(0, len(x), QUERIES)])
    parts = [found[lo] for lo in sorted(found)]
    if len(parts) == 1:
        return Ragged(*map(torch.from_numpy, parts[0]))
    return Ragged(*(torch.from_numpy(np.concatenate(side)) for side in zip(*parts, strict=True)))


def _scanned(x: Any, search: NearestRows, radius: float) -> tuple[Any, Any, Any]:
    """Rows near some queries by products, in single precision where that tells enough."""
    about = torch.from_numpy(x).double() - torch.from_numpy(search.origin)
    norm = about.square().sum(1)
    largest = search.side(torch.float64)[1]
    reach = (norm.sqrt() + largest**0.5).square()  # of |x - z|² and all its terms
    error = (x.shape[1] + 8) * 2 * torch.finfo(torch.float32).eps * reach
    fine = (error <= 0.01 * radius * radius) & (reach < 1e37)
    level = torch.float32 if bool(fine.all()) else torch.float64
    if level is torch.float64:
        error = error * (torch.finfo(level).eps / torch.finfo(torch.float32).eps)
    limit = (radius * radius * (1 + 1e-12) - norm + error).to(level)
    limit = limit + torch.finfo(level).eps * limit.abs()
    limit[~torch.isfinite(limit + 4 * reach)] = torch.inf  # beyond the largest number
    side = search.side(level)[0]
    left = torch.cat([-2 * about, torch.ones(len(x), 1)], 1).to(level)  # (q, d + 1)
    n = len(side)
    count = np.zeros((-(-n // ROWS), len(x)), np.int64)
    index, distance, used = np.empty(n, np.int64), np.empty(n), 0
    for tile, start in enumerate(range(0, n, ROWS)):
        part = side[start : start + ROWS]
        block = torch.mm(left, part.T, out=search.room(len(x), len(part), level))
        index, distance, used = kernels.scan(
            block.numpy(), len(part), start, limit.numpy(), x, search.rows, radius, count[tile],
            index, distance, used,
        )  # fmt: skip
    if len(count) == 1:
        return count[0], index[:used], distance[:used]
    to, far = np.empty(used, np.int64), np.empty(used)
    kernels.by_query(count, index, distance, to, far)
    return count.sum(0), to, far


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
