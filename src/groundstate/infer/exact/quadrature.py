r"""Quadrature: integrals over a few real dimensions to a known tolerance.

.. math:: \int e^{-e(z)/T}dz \approx |\det S| \sum_i w_i\, e^{t_i^\top t_i} e^{-e(m + S t_i)/T},
          \qquad S = \sqrt{2T}\,H^{-1/2}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from groundstate.energy.base import Energy
from groundstate.infer.base import FreeEnergy, Method, Query, check_energies
from groundstate.infer.laplace import laplace
from groundstate.infer.pack import Pack, is_simplex, no_gradient, squash
from groundstate.registry import methods

Shape = tuple[Tensor, Tensor] | None  # mode (B, D) and curvature (B, D, D) on the line
CHUNK = 2**22  # nodes evaluated at once
MAX_DIM = 3


@methods.register(
    formula=r"\int e^{-e/T}dz \approx \sum_i w_i e^{-e(z_i)/T}", make=lambda energy: Quadrature()
)
@dataclass(frozen=True)
class Quadrature(Method):
    r"""Integrate over at most three real dimensions by a product rule.

    Unbounded variables take Gauss-Hermite nodes centred at the mode and scaled by the curvature
    there, which is exact for a Gaussian; half-lines take Gauss-Legendre nodes of ``t / (1 - t)``
    with the mode at the middle. Boxes take the trapezoid rule. The answer's ``stderr`` is the
    difference to the rule of half the order, an estimate of the error.

    Parameters
    ----------
    points : nodes per dimension
    restarts : start points of the search for the mode

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Quartic(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Real(1))
    ...     def forward(self, x):
    ...         return x.square().sum(-1)
    >>> from groundstate.infer import marginalise
    >>> round(marginalise(Quartic(), "x", method=Quadrature()).value.item(), 5)
    -0.57236
    """

    points: int = 64
    restarts: int = 4

    operations: ClassVar[frozenset[str]] = frozenset({"marginalise"})

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        if masks:
            return f"{', '.join(map(repr, masks))} is known in part"
        for name in free:
            if not energy.spaces[name].is_real or is_simplex(energy.spaces[name]):
                return f"{name!r} in {energy.spaces[name]!r} is not a real vector"
            if no_gradient(energy, name) is not None:
                return no_gradient(energy, name)
        dim = sum(math.prod(energy.spaces[n].shape) for n in free)
        if dim > MAX_DIM:
            return f"the free variables have {dim} dimensions together, more than {MAX_DIM}"
        return None

    def marginalise(self, query: Query) -> FreeEnergy:
        pack = Pack(query)
        low, high = torch.isfinite(pack.low), torch.isfinite(pack.high)
        if bool((low & high).all()):
            rule = self._trapezoid
        elif bool((low | high).any()):
            rule = self._mixed
        else:
            rule = self._hermite
        shape = None if rule == self._trapezoid else laplace(query, pack, self.restarts)

        def value(points: int) -> Tensor:
            nodes, log_w = rule(points, query, pack, shape)
            if not bool(torch.isfinite(nodes).all() & torch.isfinite(log_w).all()):
                raise FloatingPointError(
                    f"{type(query.energy).__name__} has no finite minimum over "
                    f"{', '.join(query.free)}, so exp(-e/T) is probably not integrable over it"
                )
            return self._sum(query, pack, nodes, log_w)

        F = value(self.points)
        with torch.no_grad():
            error = (F.detach() - value(max(1, self.points // 2))).abs()
        if rule == self._trapezoid:
            error = error / 3  # halving the step divides its error by four
        return FreeEnergy(F, "estimate", error, {"points": self.points**pack.dim})

    # --- rules: nodes (B, N, D) and log weights (B, N) -------------------------------------

    @staticmethod
    def _hermite(points: int, query: Query, pack: Pack, shape: Shape) -> tuple[Tensor, Tensor]:
        """Gauss-Hermite along the axes of the curvature."""
        assert shape is not None
        centre, curvature = shape
        values, axes = torch.linalg.eigh(curvature)
        spread = axes * (2 * query.T / values).sqrt()[:, None]  # (B, D, D)
        t, w = np.polynomial.hermite.hermgauss(points)
        nodes, log_w = _product(pack, [(t, np.log(w) + t * t)] * pack.dim)
        log_det = torch.linalg.slogdet(spread).logabsdet
        u = centre[:, None] + torch.einsum("nd,bed->bne", nodes, spread)
        return u, log_w + log_det[:, None]

    @staticmethod
    def _trapezoid(points: int, query: Query, pack: Pack, shape: Shape) -> tuple[Tensor, Tensor]:
        axes = []
        for low, high in zip(pack.low.tolist(), pack.high.tolist(), strict=True):
            w = np.full(points + 1, (high - low) / points)
            w[[0, -1]] /= 2
            axes.append((np.linspace(low, high, points + 1), np.log(w)))
        nodes, log_w = _product(pack, axes)
        return nodes.expand(query.rows, -1, -1), log_w.expand(query.rows, -1)

    @staticmethod
    def _mixed(points: int, query: Query, pack: Pack, shape: Shape) -> tuple[Tensor, Tensor]:
        """Each coordinate by itself: Hermite on lines, Legendre on intervals and half-lines."""
        assert shape is not None
        centre, curvature = shape
        at, _ = squash(centre, pack.low, pack.high)
        spread = (2 * query.T * torch.linalg.inv(curvature).diagonal(dim1=1, dim2=2)).sqrt()
        h, hw = np.polynomial.hermite.hermgauss(points)
        g, gw = np.polynomial.legendre.leggauss(points)
        g, gw = (g + 1) / 2, gw / 2  # on [0, 1]
        axes = []
        bounds = zip(pack.low.tolist(), pack.high.tolist(), strict=True)
        kinds = [(math.isfinite(low), math.isfinite(high)) for low, high in bounds]
        for below, above in kinds:
            axes.append((g, np.log(gw)) if below or above else (h, np.log(hw) + h * h))
        nodes, log_w = _product(pack, axes)
        columns, log_j = [], log_w.expand(query.rows, -1)
        for i, (below, above) in enumerate(kinds):
            t = nodes[:, i]  # (N,)
            if below and above:
                width = pack.high[i] - pack.low[i]
                columns.append((pack.low[i] + width * t).expand(query.rows, -1))
                log_j = log_j + width.log()
            elif below or above:  # t / (1 - t) covers the half-line, the mode at its middle
                edge, sign = (pack.low[i], 1) if below else (pack.high[i], -1)
                scale = (at[:, i] - edge).abs()[:, None]  # (B, 1)
                columns.append(edge + sign * scale * (t / (1 - t)))
                log_j = log_j + scale.log() - 2 * torch.log1p(-t)
            else:
                columns.append(at[:, i, None] + spread[:, i, None] * t)
                log_j = log_j + spread[:, i, None].log()
        return torch.stack(columns, 2), log_j

    @staticmethod
    def _sum(query: Query, pack: Pack, u: Tensor, log_w: Tensor) -> Tensor:
        """``F`` from nodes ``(B, N, D)`` and log weights ``(B, N)``, rows in chunks."""
        b, n = log_w.shape
        step = max(1, CHUNK // n)

        def part(rows: slice) -> Tensor:
            fixed = {name: g[rows].repeat_interleave(n, 0) for name, g in query.fixed.items()}
            e = query.energy(**fixed, **pack.unpack(u[rows].reshape(-1, pack.dim)))
            e = check_energies(e, query.energy).reshape(-1, n)
            return -query.T * torch.logsumexp(log_w[rows] - e / query.T, 1)

        parts = [slice(i, i + step) for i in range(0, b, step)]
        run: Callable[[slice], Tensor] = part
        if len(parts) > 1 and torch.is_grad_enabled():
            run = lambda rows: checkpoint(part, rows, use_reentrant=False)  # noqa: E731
        return torch.cat([run(rows) for rows in parts])


def _product(pack: Pack, axes: list[tuple[np.ndarray, np.ndarray]]) -> tuple[Tensor, Tensor]:
    """Nodes ``(N, D)`` and log weights ``(N,)`` of a product rule."""
    nodes = np.stack(np.meshgrid(*(t for t, _ in axes), indexing="ij"), -1).reshape(-1, len(axes))
    weights = np.stack(np.meshgrid(*(w for _, w in axes), indexing="ij"), -1)
    log_w = weights.reshape(-1, len(axes)).sum(1)
    return (
        torch.from_numpy(nodes).to(pack.low),
        torch.from_numpy(log_w).to(pack.low),
    )
