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
from groundstate.infer.pack import Pack, is_simplex, squash
from groundstate.registry import methods

CHUNK = 2**22  # nodes evaluated at once
MAX_DIM = 3


@methods.register(
    formula=r"\int e^{-e/T}dz \approx \sum_i w_i e^{-e(z_i)/T}", make=lambda energy: Quadrature()
)
@dataclass(frozen=True)
class Quadrature(Method):
    r"""Integrate over at most three real dimensions by a product rule.

    Unbounded variables take Gauss-Hermite nodes centred at the mode and scaled by the curvature
    there, which is exact for a Gaussian; half-bounded coordinates are first mapped to the line by
    a logarithm. Boxes take the trapezoid rule. The answer's ``stderr`` is the difference to the
    rule of half the order, an estimate of the error.

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
        dim = sum(math.prod(energy.spaces[n].shape) for n in free)
        if dim > MAX_DIM:
            return f"the free variables have {dim} dimensions together, more than {MAX_DIM}"
        return None

    def marginalise(self, query: Query) -> FreeEnergy:
        pack = Pack(query)
        boxed = bool(torch.isfinite(pack.low).all() and torch.isfinite(pack.high).all())
        rule = self._trapezoid if boxed else self._hermite
        if not boxed:
            centre, curvature = laplace(query, pack, self.restarts)
            values, axes = torch.linalg.eigh(curvature)
            spread = axes * (2 * query.T / values).sqrt()[:, None]  # (B, D, D)

        def value(points: int) -> Tensor:
            if boxed:
                nodes, log_w = rule(points, pack)
                u = nodes[None].expand(query.rows, -1, -1)
                return self._sum(query, pack, u, log_w[None].expand(query.rows, -1), False)
            t, log_w = rule(points, pack)  # (N, D), (N,)
            u = centre[:, None] + torch.einsum("nd,bed->bne", t, spread)  # (B, N, D)
            log_det = torch.linalg.slogdet(spread).logabsdet
            return self._sum(query, pack, u, log_w[None] + log_det[:, None], True)

        F = value(self.points)
        with torch.no_grad():
            coarse = value(max(1, self.points // 2))
        error = (F.detach() - coarse).abs() / (3 if boxed else 1)
        return FreeEnergy(F, "estimate", error, {"points": self.points**pack.dim})

    # --- rules ---------------------------------------------------------------------------

    @staticmethod
    def _hermite(points: int, pack: Pack) -> tuple[Tensor, Tensor]:
        t, w = np.polynomial.hermite.hermgauss(points)
        return _product(pack, [(t, np.log(w) + t * t)] * pack.dim)

    @staticmethod
    def _trapezoid(points: int, pack: Pack) -> tuple[Tensor, Tensor]:
        axes = []
        for low, high in zip(pack.low.tolist(), pack.high.tolist(), strict=True):
            w = np.full(points + 1, (high - low) / points)
            w[[0, -1]] /= 2
            axes.append((np.linspace(low, high, points + 1), np.log(w)))
        return _product(pack, axes)

    def _sum(self, query: Query, pack: Pack, u: Tensor, log_w: Tensor, squashed: bool) -> Tensor:
        """``F`` from nodes ``(B, N, D)`` and log weights ``(B, N)``, rows in chunks."""
        b, n = log_w.shape
        step = max(1, CHUNK // n)

        def part(rows: slice) -> Tensor:
            at = u[rows].reshape(-1, pack.dim)
            v, log_jacobian = squash(at, pack.low, pack.high) if squashed else (at, at[:, :0])
            fixed = {name: g[rows].repeat_interleave(n, 0) for name, g in query.fixed.items()}
            e = query.energy(**fixed, **pack.unpack(v))
            e = check_energies(e, query.energy) - query.T * log_jacobian.sum(1)
            return -query.T * torch.logsumexp(log_w[rows] - e.reshape(-1, n) / query.T, 1)

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
