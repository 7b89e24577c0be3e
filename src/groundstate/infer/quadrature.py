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
from groundstate.infer.descent import descend
from groundstate.infer.pack import Pack, is_simplex
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
            centre, spread = self._shape(query, pack)

        def value(points: int) -> Tensor:
            if boxed:
                nodes, log_w = rule(points, pack)
                u = nodes[None].expand(query.rows, -1, -1)
                return self._sum(query, pack, u, log_w[None].expand(query.rows, -1))
            t, log_w = rule(points, pack)  # (N, D), (N,)
            u = centre[:, None] + torch.einsum("nd,bed->bne", t, spread)  # (B, N, D)
            log_det = torch.linalg.slogdet(spread).logabsdet
            return self._sum(query, pack, u, log_w[None] + log_det[:, None])

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

    def _sum(self, query: Query, pack: Pack, u: Tensor, log_w: Tensor) -> Tensor:
        """``F`` from nodes ``(B, N, D)`` and log weights ``(B, N)``, rows in chunks."""
        b, n = log_w.shape
        step = max(1, CHUNK // n)

        def part(rows: slice) -> Tensor:
            at = u[rows].reshape(-1, pack.dim)
            v, log_jacobian = _inside(at, pack)
            fixed = {name: g[rows].repeat_interleave(n, 0) for name, g in query.fixed.items()}
            e = query.energy(**fixed, **pack.unpack(v))
            e = check_energies(e, query.energy) - query.T * log_jacobian
            return -query.T * torch.logsumexp(log_w[rows] - e.reshape(-1, n) / query.T, 1)

        parts = [slice(i, i + step) for i in range(0, b, step)]
        run: Callable[[slice], Tensor] = part
        if len(parts) > 1 and torch.is_grad_enabled():
            run = lambda rows: checkpoint(part, rows, use_reentrant=False)  # noqa: E731
        return torch.cat([run(rows) for rows in parts])

    def _shape(self, query: Query, pack: Pack) -> tuple[Tensor, Tensor]:
        """Mode ``(B, D)`` on the line and ``S`` ``(B, D, D)`` from the curvature there."""
        b, n = query.rows, self.restarts
        fixed = {k: v.detach().repeat(n, *(1,) * (v.ndim - 1)) for k, v in query.fixed.items()}

        def energy(u: Tensor, rows: Tensor | None) -> Tensor:
            given = fixed if rows is None else {k: v[rows] for k, v in fixed.items()}
            v, log_jacobian = _inside(u, pack)
            return query.energy(**given, **pack.unpack(v)) - query.T * log_jacobian

        def value_and_grad(u: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                v = u.detach().requires_grad_()
                e = energy(v, rows)
                (g,) = torch.autograd.grad(e.sum(), v)
            return e.detach(), g

        everywhere = torch.full_like(pack.low, math.inf)
        start = _outside(pack.starts(n).reshape(n * b, pack.dim), pack)
        found = descend(value_and_grad, start, low=-everywhere, high=everywhere, tol=1e-8)
        best = found.value.reshape(n, b).argmin(0)
        rows = best * b + torch.arange(b, device=best.device)
        centre = found.point[rows]
        with torch.enable_grad():
            u = centre.detach().requires_grad_()
            (g,) = torch.autograd.grad(energy(u, rows).sum(), u, create_graph=True)
            hessian = [
                torch.autograd.grad(g[:, i].sum(), u, retain_graph=True, allow_unused=True)[0]
                for i in range(pack.dim)
            ]
        H = torch.stack([torch.zeros_like(u) if h is None else h for h in hessian], 1).detach()
        curvature, axes = torch.linalg.eigh((H + H.mT) / 2)
        # a flat or saddle direction has no scale of its own: take the unit scale
        flat = curvature <= 1e-8 * curvature.abs().amax(1, keepdim=True).clamp_min(1.0)
        curvature = torch.where(flat, torch.ones_like(curvature), curvature)
        return centre, axes * (2 * query.T / curvature).sqrt()[:, None]


def _product(pack: Pack, axes: list[tuple[np.ndarray, np.ndarray]]) -> tuple[Tensor, Tensor]:  # type: ignore[type-arg]
    """Nodes ``(N, D)`` and log weights ``(N,)`` of a product rule."""
    nodes = np.stack(np.meshgrid(*(t for t, _ in axes), indexing="ij"), -1).reshape(-1, len(axes))
    weights = np.stack(np.meshgrid(*(w for _, w in axes), indexing="ij"), -1)
    log_w = weights.reshape(-1, len(axes)).sum(1)
    return (
        torch.from_numpy(nodes).to(pack.low),
        torch.from_numpy(log_w).to(pack.low),
    )


def _inside(u: Tensor, pack: Pack) -> tuple[Tensor, Tensor]:
    """The line to half-lines and intervals, with the log of the Jacobian ``(R,)``."""
    low, high = torch.isfinite(pack.low), torch.isfinite(pack.high)
    if not bool(low.any() or high.any()):
        return u, u.new_zeros(len(u))
    both = low & high
    lo, hi = pack.low.nan_to_num(neginf=0.0), pack.high.nan_to_num(posinf=0.0)
    grown = u.clamp(max=80.0).exp()
    v = torch.where(low, lo + grown, torch.where(high, hi - grown, u))
    v = torch.where(both, lo + (hi - lo) * u.sigmoid(), v)
    squashed = torch.nn.functional.logsigmoid(u) + torch.nn.functional.logsigmoid(-u)
    width = torch.where(both, hi - lo, torch.ones_like(lo)).log()
    log_j = torch.where(both, squashed + width, torch.where(low | high, u, torch.zeros_like(u)))
    return v, log_j.sum(1)


def _outside(v: Tensor, pack: Pack) -> Tensor:
    """The inverse of ``_inside``."""
    low, high = torch.isfinite(pack.low), torch.isfinite(pack.high)
    lo, hi = pack.low.nan_to_num(neginf=0.0), pack.high.nan_to_num(posinf=0.0)
    tiny = torch.finfo(v.dtype).eps
    u = torch.where(low, (v - lo).clamp_min(tiny).log(), v)
    u = torch.where(high & ~low, (hi - v).clamp_min(tiny).log(), u)
    share = ((v - lo) / torch.where(low & high, hi - lo, torch.ones_like(lo))).clamp(tiny, 1 - tiny)
    return torch.where(low & high, share.logit(), u)
