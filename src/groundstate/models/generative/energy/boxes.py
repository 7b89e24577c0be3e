r"""One or two columns on a grid: :math:`\log\int e^{-e}` and exact draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.infer.base import FreeEnergy, Method, Query, check_energies

CELLS = {1: 4001, 2: 201}  # nodes along each axis
LEARNED = {1: 401, 2: 61}  # while learning
MARGIN = 1.0  # of the box around the rows, in their ranges
BORDER = 1e-3  # share of the mass at the border from which the box is too small


@dataclass(frozen=True)
class BoxGrid(Method):
    """Sums over a regular grid of a box, for a real variable of at most two numbers.

    Parameters
    ----------
    low, high : corners of the box
    points : nodes along each axis
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    points: int

    operations = frozenset({"marginalise"})

    def _against(self, energy: Energy, operation: str, free: Any, masks: Any) -> str | None:
        return None if tuple(free) == ("x",) and not masks else "it sums over x alone"

    def marginalise(self, query: Query) -> FreeEnergy:
        nodes, log_cell = _nodes(self.low, self.high, self.points, query.device, query.dtype)
        given = query.fixed
        if not given:
            e = check_energies(query.energy(x=nodes), query.energy)
            value = -torch.logsumexp(-e / query.T, 0, keepdim=True) * query.T
        else:
            rows = []
            for i in range(query.rows):
                own = {k: v[i : i + 1].expand(len(nodes), *v.shape[1:]) for k, v in given.items()}
                e = query.energy(x=nodes, **own)
                rows.append(-torch.logsumexp(-e / query.T, 0) * query.T)
            value = torch.stack(rows)
        return FreeEnergy(value - query.T * log_cell, "estimate")


def _nodes(
    low: tuple[float, ...], high: tuple[float, ...], n: int, device: Any, dtype: Any
) -> tuple[Tensor, float]:
    axes = [
        a + (b - a) * (torch.arange(n, device=device, dtype=dtype) + 0.5) / n
        for a, b in zip(low, high, strict=True)
    ]
    nodes = torch.cartesian_prod(*axes).reshape(-1, len(low))
    return nodes, sum(math.log((b - a) / n) for a, b in zip(low, high, strict=True))


@dataclass(frozen=True)
class DataBox:
    """The region where rows can be, ``low`` and ``high`` for each coded column."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def around(cls, x: Tensor) -> DataBox:
        """The range of rows and as much again on both sides."""
        low, high = x.amin(0).double(), x.amax(0).double()
        span = (high - low).clamp_min(1.0)
        return cls(tuple((low - MARGIN * span).tolist()), tuple((high + MARGIN * span).tolist()))

    @classmethod
    def of(cls, array: NDArray[np.float64]) -> DataBox:
        return cls(tuple(array[:, 0].tolist()), tuple(array[:, 1].tolist()))

    def to_numpy(self) -> NDArray[np.float64]:
        return np.array([self.low, self.high]).T

    def quadrature(self) -> BoxGrid:
        """The sum that learning uses."""
        return BoxGrid(self.low, self.high, LEARNED[len(self.low)])

    def _grid(self, energy: Energy, y: Tensor | None) -> tuple[Tensor, Tensor, float]:
        device, dtype = energy.placement()
        nodes, log_cell = _nodes(self.low, self.high, CELLS[len(self.low)], device, dtype)
        given = {} if y is None else {"y": y.expand(len(nodes), -1)}
        return nodes, energy(x=nodes, **given), log_cell

    def log_integral(self, energy: Energy, y: Tensor | None) -> Tensor:
        r""":math:`\log\int e^{-e}` over the box, ``(1,)``."""
        _, e, log_cell = self._grid(energy, y)
        return torch.logsumexp(-e, 0, keepdim=True) + log_cell

    def draw(
        self, energy: Energy, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> Tensor:
        """Cells by their mass, and a uniform place in the cell, ``(n, d)``."""
        contexts = [None] if y is None else list(torch.unique(y, dim=0).split(1))
        index = None if y is None else torch.unique(y, dim=0, return_inverse=True)[1]
        m = CELLS[len(self.low)]
        device, dtype = energy.placement()
        width = torch.tensor(
            [(b - a) / m for a, b in zip(self.low, self.high, strict=True)],
            device=device, dtype=dtype,
        )  # fmt: skip
        out = torch.empty(n, len(self.low), device=device, dtype=dtype)
        for j, row in enumerate(contexts):
            nodes, e, _ = self._grid(energy, row)
            mine = torch.arange(n, device=device) if index is None else (index == j).nonzero()[:, 0]
            p = torch.softmax(-e.double() / T, 0).cumsum(0)
            u = torch.rand(len(mine), generator=generator, device=device, dtype=torch.float64)
            at = torch.searchsorted(p, u * p[-1]).clamp_max(len(p) - 1)
            jitter = torch.rand(
                len(mine), len(self.low), generator=generator, device=device, dtype=dtype
            )
            out[mine] = nodes[at] + (jitter - 0.5) * width
        return out
