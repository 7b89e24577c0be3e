r"""One or two columns on a grid: :math:`\log\int e^{-e}` and exact draws."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.errors import Unreliable
from groundstate.infer.base import FreeEnergy, Method, Query, check_energies

CELLS = {1: 4001, 2: 201}  # nodes along each axis
ROWS = 2**16  # nodes whose energies are taken at once
LEARNED = {1: 401, 2: 61}  # while learning
MARGIN = 1.0  # of the box around the rows, in their ranges
EDGE = 50  # one part in so many of an axis is the border on each side
BORDER = 1e-3  # share of the mass at the border from which the box is too small
DOUBLINGS = 5  # of a box that is too small
FINER = 2  # of which the first leave the grid as fine as it was


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

    def _grid(self, energy: Energy, y: Tensor | None) -> tuple[DataBox, int, Tensor, Tensor]:
        """This box or a wider one, its nodes along each axis, all of them, and their energies.

        An energy that learned little is flat and reaches far beyond the rows.
        """
        device, dtype = energy.placement()
        for doublings in range(DOUBLINGS + 1):
            box, m = self._wider(2.0**doublings), CELLS[len(self.low)] * 2 ** min(doublings, FINER)
            nodes, _ = _nodes(box.low, box.high, m, device, dtype)
            parts = [
                energy(x=some, **({} if y is None else {"y": y.expand(len(some), -1)}))
                for some in nodes.split(ROWS)
            ]
            e = torch.cat(parts)
            mass = torch.softmax(-e.double(), 0).reshape((m,) * len(self.low))
            inner = mass[(slice(m // EDGE, m - m // EDGE),) * len(self.low)].sum()
            if 1 - float(inner) < BORDER:
                break
        else:
            warnings.warn(
                f"{1 - float(inner):.1%} of the mass of this energy lies at the border of a box "
                f"{3 * 2**DOUBLINGS} times as wide as the rows, so that its log probabilities are too "
                "high; learn longer, or raise confine",
                Unreliable,
                stacklevel=2,
            )
        return box, m, nodes, e

    def _wider(self, times: float) -> DataBox:
        pairs = [
            ((a + b) / 2, (b - a) / 2 * times) for a, b in zip(self.low, self.high, strict=True)
        ]
        return DataBox(tuple(m - h for m, h in pairs), tuple(m + h for m, h in pairs))

    def log_integral(self, energy: Energy, y: Tensor | None) -> Tensor:
        r""":math:`\log\int e^{-e}`, ``(1,)``."""
        box, m, _, e = self._grid(energy, y)
        cell = sum(math.log((b - a) / m) for a, b in zip(box.low, box.high, strict=True))
        return torch.logsumexp(-e, 0, keepdim=True) + cell

    def draw(
        self, energy: Energy, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> Tensor:
        """Cells by their mass, and a uniform place in the cell, ``(n, d)``."""
        contexts = [None] if y is None else list(torch.unique(y, dim=0).split(1))
        index = None if y is None else torch.unique(y, dim=0, return_inverse=True)[1]
        device, dtype = energy.placement()
        out = torch.empty(n, len(self.low), device=device, dtype=dtype)
        for j, row in enumerate(contexts):
            box, m, nodes, e = self._grid(energy, row)
            corners = torch.tensor([box.low, box.high], device=device, dtype=dtype)
            width = (corners[1] - corners[0]) / m
            mine = torch.arange(n, device=device) if index is None else (index == j).nonzero()[:, 0]
            p = torch.softmax(-e.double() / T, 0).cumsum(0)
            u = torch.rand(len(mine), generator=generator, device=device, dtype=torch.float64)
            at = torch.searchsorted(p, u * p[-1]).clamp_max(len(p) - 1)
            jitter = torch.rand(
                len(mine), len(self.low), generator=generator, device=device, dtype=dtype
            )
            out[mine] = nodes[at] + (jitter - 0.5) * width
        return out
