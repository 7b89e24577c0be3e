r"""Nearest rows on a GPU: tensor cores propose, minima of groups select, differences decide.

A block of products gives scores :math:`\|z\|^2 - 2x^\top z` of some queries against all rows. Of
every group of columns only the least score is looked at: the m best scores lie in the m groups of
lowest minimum, so that one pass over the block is enough. The first block products run in TF32, whose
error is bounded by :math:`2^{-10}(\|x\| + \|z\|)^2`; where that bound leaves an answer open, the
query is repeated in single precision, and last in double precision. Ties go to the lower index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.functional import pad

GROUP = 128  # columns of which the least score is looked at
CELLS = 2**29  # numbers of one product
SPARE = 16  # candidates beyond k
SMALL = 2**22  # numbers of a product below which there is nothing to save
FAR = 1e30  # score of a column that is no row
# of each level: error of a product's factors, and of each sum, in units of (|x| + |z|)²
ERROR = {"tf32": (2.0**-10, 2.0**-22), "float32": (0.0, 2.0**-22), "float64": (0.0, 2.0**-50)}


@torch.no_grad()
def nearest_on_device(
    x: Tensor, rows: Tensor, k: int, *, cells: int = CELLS
) -> tuple[Tensor, Tensor]:
    """Distances (float64) and indices ``(q, k)``, the nearest first; exact like `NearestRows`.

    Parameters
    ----------
    x, rows : ``(q, d)`` and ``(n, d)``, on one device
    k : how many
    cells : numbers of one block of products

    Examples
    --------
    >>> found = nearest_on_device(torch.tensor([[0.9]]), torch.tensor([[0.0], [1.0], [5.0]]), 2)
    >>> found[1].tolist()
    [[1, 0]]
    """
    distance = torch.empty(len(x), k, dtype=torch.float64, device=x.device)
    index = torch.empty(len(x), k, dtype=torch.int64, device=x.device)
    waiting = torch.arange(len(x), device=x.device)
    fast = x.is_cuda and len(x) * len(rows) > SMALL
    for level in ("tf32", "float32", "float64") if fast else ("float32", "float64"):
        if not len(waiting):
            break
        asked = x if len(waiting) == len(x) else x[waiting]
        square, found, open_ = _level(level, asked, rows, k, cells)
        distance[waiting], index[waiting] = square.sqrt(), found
        waiting = waiting[open_]
    for part in waiting.split(max(1, cells // (8 * rows.numel()))):
        square = (rows.double() - x[part, None].double()).square().sum(-1)
        value, found = square.sort(dim=1, stable=True)
        distance[part], index[part] = value[:, :k].sqrt(), found[:, :k]
    return distance, index


def _level(
    level: str, x: Tensor, rows: Tensor, k: int, cells: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Squared distances and indices at one precision, and where they are not proved."""
    n, d = rows.shape
    m = min(k + SPARE, n)
    factors, sums = ERROR[level]
    dtype = torch.float64 if level == "float64" else torch.float32
    origin = rows.mean(0, dtype=torch.float64)
    about = rows.double() - origin
    norm = about.square().sum(1)  # (n,)
    side = _columns(about, norm, dtype)  # (n + padding, d + 3 + padding)
    largest = norm.max().sqrt()
    square, index, open_ = [], [], []
    with _products(level):
        for part in x.split(max(1, cells // len(side))):
            centred = part.double() - origin
            size = centred.square().sum(1)  # (q,)
            scores = _queries(centred, side.shape[1], dtype) @ side.T  # (q, n + padding)
            worst, near = _least(scores, m)
            exact = (rows[near].double() - part[:, None].double()).square().sum(-1)  # (q, m)
            order = near.argsort(1)
            order = order.gather(1, exact.gather(1, order).sort(dim=1, stable=True).indices)
            best = exact.gather(1, order)[:, :k]
            error = (factors + (d + 8) * sums) * (size.sqrt() + largest).square()
            floor = worst.double() + size - error
            square.append(best)
            index.append(near.gather(1, order)[:, :k])
            open_.append(~(best[:, -1] < floor) & (m < n))
    return torch.cat(square), torch.cat(index), torch.cat(open_)


def _columns(about: Tensor, norm: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows beside their squared norms; these in three parts, each exact in TF32."""
    parts, rest = [], norm
    for _ in range(3):
        parts.append((rest.float().view(torch.int32) & ~0x1FFF).view(torch.float32).double())
        rest = rest - parts[-1]
    parts[-1] = parts[-1] + rest
    side = torch.cat([about, torch.stack(parts, 1)], 1).to(dtype)
    rest_rows = -len(side) % GROUP
    side = pad(side, (0, -side.shape[1] % 8, 0, rest_rows))
    if rest_rows:
        side[-rest_rows:, about.shape[1]] = FAR
    return side


def _queries(centred: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    d = centred.shape[1]
    left = pad(-2 * centred, (0, width - d)).to(dtype)
    left[:, d : d + 3] = 1.0
    return left


def _least(scores: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Column numbers of the m lowest scores ``(q, m)``, and the highest of these scores."""
    q, n = scores.shape
    groups = n // GROUP
    if groups <= 2 * m:
        value, index = scores.topk(m, largest=False)
        return value[:, -1], index
    # a group is every so-manieth column: minima over them are vectors of minima
    view = scores.view(q, GROUP, groups)
    chosen = view.amin(1).topk(m, largest=False, sorted=False).indices  # (q, m)
    inside = view.gather(2, chosen[:, None].expand(-1, GROUP, -1)).reshape(q, GROUP * m)
    value, index = inside.topk(m, largest=False)
    return value[:, -1], chosen.gather(1, index % m) + index // m * groups


@contextmanager
def _products(level: str) -> Iterator[None]:
    """Products in TF32 inside the block, where that is the level."""
    kept = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if level == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(kept)
