r"""Energy of a label under a learned metric: which class has rows nearby?"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real

CELLS = 2**22  # distances of one block


def _example() -> LinearMetricEnergy:
    energy = LinearMetricEnergy(2, 1, 2)
    with torch.no_grad():
        energy.J.copy_(torch.tensor([[1.0, -0.5]]))
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(rows, torch.tensor([0, 1, 0, 1]), torch.tensor([1.0, 2.0, 1.0, 0.5]))
    return energy


@registered(r"e(x, y) = -\log\sum_{i:\,y_i = y}w_i\,e^{-\|J(x - x_i)\|^2}", _example)
class LinearMetricEnergy(Energy):
    r"""Neighbours under a linear map,
    :math:`e(x, y) = -\log\sum_{i:\,y_i = y}w_i\,e^{-\|J(x - x_i)\|^2}`.

    J is the learned map and :math:`M = J^\top J` its metric; with fewer rows than columns it is a
    pseudometric, a reduction of dimension. :math:`p(y\mid x)` is the chance that a neighbour, drawn by
    the softmin of squared distances, is of class y.

    Parameters
    ----------
    d, p : features, and rows of J
    m : classes
    n : remembered rows

    Attributes
    ----------
    J : Parameter, ``(p, d)``
    rows_x, labels, weight : buffers, ``(n, d)``, ``(n,)``, ``(n,)``

    Examples
    --------
    >>> e = LinearMetricEnergy(1, 1, 2)
    >>> e.remember(torch.tensor([[0.0], [2.0]]), torch.tensor([0, 1]))
    >>> e.table("y", x=torch.tensor([[0.5]])).tolist()
    [[0.25, 2.25]]
    """

    rows_x: Tensor
    labels: Tensor
    weight: Tensor

    def __init__(self, d: int, p: int, m: int, n: int = 0) -> None:
        super().__init__(x=Real(d), y=Finite(m))
        self.m = m
        self.J = nn.Parameter(torch.eye(p, d))
        self.register_buffer("rows_x", torch.zeros(n, d))
        self.register_buffer("labels", torch.zeros(n, dtype=torch.int64))
        self.register_buffer("weight", torch.ones(n))

    def config(self) -> dict[str, Any]:
        p, d = self.J.shape
        return {"d": d, "p": p, "m": self.m, "n": len(self.rows_x)}

    @torch.no_grad()
    def remember(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> None:
        """Keep these rows; those of weight zero are not kept."""
        w = x.new_ones(len(x)) if weight is None else weight.to(x)
        keep = w > 0
        like = self.J
        self.rows_x, self.weight = x[keep].to(like), w[keep].to(like)
        self.labels = y[keep].to(like.device)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None])[:, 0]

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        if not len(self.rows_x):
            return 0.0 * x.sum(1, keepdim=True).expand(-1, self.m)
        step = max(1, CELLS // len(self.rows_x))
        return torch.cat([self._block(part) for part in x.split(step)])

    def _block(self, x: Tensor) -> Tensor:
        centre = self.rows_x.mean(0)
        z, rows = (x - centre) @ self.J.T, (self.rows_x - centre) @ self.J.T
        gap = z[:, None] - rows if rows.shape[1] <= 8 else None
        if gap is not None:
            d2 = gap.square().sum(-1)
        else:
            d2 = z.square().sum(1)[:, None] + rows.square().sum(1) - 2 * z @ rows.T
            d2 = d2.clamp(min=0)
        scores = self.weight.log() - d2  # (B, n)
        own = self.labels == torch.arange(self.m, device=x.device)[:, None]  # (m, n)
        parts = [
            torch.logsumexp(scores[:, mine], 1)
            if bool(mine.any())
            else scores.new_full((len(x),), -math.inf)
            for mine in own
        ]
        return -torch.stack(parts, 1)
