r"""Sums of natural cubic splines, one per column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class NaturalSplines(nn.Module):
    r""":math:`f(x) = b + \sum_j g_j(x_j)`: cubic between the knots, straight outside them.

    On an interval of length h with :math:`t = (x - t_0)/h`, values :math:`f` and slopes :math:`s`,

    .. math:: g = f_0 + t^2(3-2t)(f_1 - f_0) + ht(1-t)\{(1-t)s_0 - ts_1\} .

    Parameters
    ----------
    sizes : knots of each column; a column with fewer than two is constant

    Attributes
    ----------
    knots : buffer, ``(sum of sizes,)``
    values, slopes : Parameters, ``(sum of sizes,)``
    b : buffer, ``(1,)``

    Examples
    --------
    >>> splines = NaturalSplines([2])
    >>> line = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 3.0]), torch.tensor([2.0, 2.0])
    >>> splines.set([line], 0.0)
    >>> splines(torch.tensor([[0.5], [2.0]])).tolist()
    [[2.0], [5.0]]
    """

    knots: Tensor
    values: Tensor
    slopes: Tensor
    b: Tensor

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = [int(s) for s in sizes]
        total = sum(self.sizes)
        self.register_buffer("knots", torch.zeros(total))
        # learned, but by a closed form: a curve through values has its slopes already
        self.values = nn.Parameter(torch.zeros(total), requires_grad=False)
        self.slopes = nn.Parameter(torch.zeros(total), requires_grad=False)
        self.register_buffer("b", torch.zeros(1))

    def config(self) -> dict[str, Any]:
        return {"sizes": self.sizes}

    def set(self, columns: Sequence[tuple[Tensor, Tensor, Tensor]], b: float) -> None:
        """Knots, values and slopes of each column, and the constant."""
        self.sizes = [len(knots) for knots, _, _ in columns]
        joined = (torch.cat([column[k] for column in columns]).to(self.b) for k in range(3))
        self.knots = next(joined)
        self.values = nn.Parameter(next(joined), requires_grad=False)
        self.slopes = nn.Parameter(next(joined), requires_grad=False)
        self.b = torch.full_like(self.b, b)

    def forward(self, x: Tensor) -> Tensor:
        """f, ``(B, 1)``."""
        total = self.b.expand(x.shape[0])
        at = 0
        for j, size in enumerate(self.sizes):
            piece = slice(at, at + size)
            if size > 1:
                total = total + _natural(
                    x[:, j], self.knots[piece], self.values[piece], self.slopes[piece]
                )
            elif size == 1:
                total = total + self.values[at]
            at += size
        return total[:, None]


def _natural(x: Tensor, t: Tensor, f: Tensor, d: Tensor) -> Tensor:
    u = torch.minimum(torch.maximum(x, t[0]), t[-1])
    i = (torch.searchsorted(t, u.detach().contiguous(), right=True) - 1).clamp(0, len(t) - 2)
    h = t[i + 1] - t[i]
    s = (u - t[i]) / h
    rise = s.square() * (3 - 2 * s) * (f[i + 1] - f[i])
    inside = f[i] + rise + h * s * (1 - s) * ((1 - s) * d[i] - s * d[i + 1])
    return inside + torch.where(x < t[0], d[0], d[-1]) * (x - u)
