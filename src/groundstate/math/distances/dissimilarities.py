r"""Dissimilarities of rows by name, each a table :math:`(d(x_b, z_i))_{bi}`.

With numbers they compare entries: Canberra :math:`\sum_j|x_j-z_j|/(|x_j|+|z_j|)`, Bray and Curtis
:math:`\sum_j|x_j-z_j|/\sum_j|x_j+z_j|`, Hamming the share of entries that differ. With sets (an entry
counts as there when it is not zero) they compare the entries :math:`a` in both, :math:`b` in one of the
two and :math:`c` in none, of :math:`d = a + b + c`: Jaccard is :math:`b/(a+b)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

CELLS = 2**22  # numbers of one block of differences


@dataclass(frozen=True)
class OfTable:
    """A metric as a function of a table of rows, which gives the distances of all pairs.

    >>> gaps = OfTable(lambda rows: abs(rows - rows.T))
    >>> gaps.table(torch.tensor([[0.0]]), torch.tensor([[1.0], [3.0]])).tolist(), gaps([0.0], [2.0])
    ([[1.0, 3.0]], 2.0)
    """

    distances: Callable[[Any], Any]

    def __call__(self, a: Any, b: Any) -> float:
        return float(self.distances(np.stack([a, b]))[0, 1])

    def table(self, x: Tensor, z: Tensor) -> Tensor:
        rows = torch.cat([x, z]).detach().cpu().numpy()
        found = np.asarray(self.distances(rows), np.float64)[: len(x), len(x) :]
        return torch.from_numpy(found).to(x.device)


def _ratio(top: Tensor, bottom: Tensor) -> Tensor:
    """top/bottom, and 0 where there is nothing to divide by."""
    return torch.where(bottom > 0, top / torch.where(bottom > 0, bottom, 1.0), 0.0)


def _canberra(x: Tensor, z: Tensor) -> Tensor:
    return _ratio((x - z).abs(), x.abs() + z.abs()).sum(-1)


def _braycurtis(x: Tensor, z: Tensor) -> Tensor:
    return _ratio((x - z).abs().sum(-1), (x + z).abs().sum(-1))


def _hamming(x: Tensor, z: Tensor) -> Tensor:
    return (x != z).to(x.dtype).mean(-1)


def _sqeuclidean(x: Tensor, z: Tensor) -> Tensor:
    return (x - z).square().sum(-1)


def _nan_euclidean(x: Tensor, z: Tensor) -> Tensor:
    gap = x - z
    there = ~gap.isnan()
    total = torch.where(there, gap, 0.0).square().sum(-1)
    share = there.to(x.dtype).mean(-1)
    return torch.where(share > 0, (total / share).sqrt(), torch.nan)


def _haversine(x: Tensor, z: Tensor) -> Tensor:
    half = torch.sin(0.5 * (x - z)).square()
    across = x[..., 0].cos() * z[..., 0].cos() * half[..., 1]
    return 2 * torch.asin((half[..., 0] + across).clamp(0, 1).sqrt())


BY_DIFFERENCE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sqeuclidean": _sqeuclidean,
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    "hamming": _hamming,
    "nan_euclidean": _nan_euclidean,
    "haversine": _haversine,
}

# from the entries in both (a), in x alone, in z alone, and in none (c)
BY_SETS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "jaccard": lambda a, p, q, c: _ratio(p + q, a + p + q),
    "dice": lambda a, p, q, c: _ratio(p + q, 2 * a + p + q),
    "rogerstanimoto": lambda a, p, q, c: _ratio(2 * (p + q), a + c + 2 * (p + q)),
    "russellrao": lambda a, p, q, c: _ratio(p + q + c, a + p + q + c),
    "sokalsneath": lambda a, p, q, c: _ratio(2 * (p + q), a + 2 * (p + q)),
    "yule": lambda a, p, q, c: _ratio(2 * p * q, a * c + p * q),
}
TABLES = (*BY_DIFFERENCE, "correlation", *BY_SETS)


def table(metric: str, x: Tensor, rows: Tensor) -> Tensor:
    """Dissimilarities ``(B, n)`` of all pairs, float64.

    >>> table("hamming", torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0], [1.0, 2.0]])).tolist()
    [[0.5, 0.0]]
    """
    x, rows = x.double(), rows.double()
    if metric == "correlation":
        a, b = (v - v.mean(1, keepdim=True) for v in (x, rows))
        return 1 - _ratio(a @ b.T, a.norm(dim=1)[:, None] * b.norm(dim=1))
    if metric in BY_SETS:
        a, b = (x != 0).double(), (rows != 0).double()
        both = a @ b.T
        mine, other = a.sum(1, keepdim=True) - both, b.sum(1) - both
        return BY_SETS[metric](both, mine, other, x.shape[1] - both - mine - other)
    one = BY_DIFFERENCE[metric]
    step = max(1, CELLS // max(1, rows.numel()))
    return torch.cat([one(part[:, None], rows[None]) for part in x.split(step)])
