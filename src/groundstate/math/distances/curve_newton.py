r"""Newton's method on the discrete energy of curves, whose Hessian is block tridiagonal."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.math.distances.riemannian import RiemannianMetric

STEPS = 6
CHORDS = 3  # steps with one factorisation


def curve_slopes(metric: RiemannianMetric, curve: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\tfrac N2\sum_i\Delta_i^\top M(m_i)\Delta_i` of curves ``(P, n, d)`` and its slope in their
    points, ``(P,)`` and ``(P, n, d)``."""
    P, n, d = curve.shape
    step, middle = curve.diff(dim=1), 0.5 * (curve[:, 1:] + curve[:, :-1])
    square, in_m, Mv = metric.slopes(middle.reshape(-1, d), step.reshape(-1, d))
    in_m, Mv = in_m.reshape(P, n - 1, d), Mv.reshape(P, n - 1, d)
    slope = torch.zeros_like(curve)
    slope[:, :-1] += 0.5 * in_m - 2 * Mv
    slope[:, 1:] += 0.5 * in_m + 2 * Mv
    half = 0.5 * (n - 1)
    return half * square.reshape(P, n - 1).sum(1), half * slope


class Hessian:
    """The factors of the Hessian in the inner points; ``definite`` says which curves have one."""

    def __init__(self, metric: RiemannianMetric, curve: Tensor) -> None:
        P, n, d = curve.shape
        step, middle = curve.diff(dim=1), 0.5 * (curve[:, 1:] + curve[:, :-1])
        found = metric.curvatures(middle.reshape(-1, d), step.reshape(-1, d))
        in_m, mixed, M = (0.5 * (n - 1) * t.reshape(P, n - 1, d, d) for t in found)
        both = 0.5 * (mixed + mixed.mT)
        before = 0.25 * in_m - both + 2 * M  # of the point at which a step begins
        after = 0.25 * in_m + both + 2 * M
        across = 0.25 * in_m + 0.5 * (mixed - mixed.mT) - 2 * M
        diagonal = after[:, :-1] + before[:, 1:]  # (P, n - 2, d, d)
        self.across = across[:, 1:-1]
        self.definite = torch.ones(P, dtype=torch.bool, device=curve.device)
        self.factors: list[Tensor] = []
        last: Tensor | None = None
        for i in range(n - 2):
            block = diagonal[:, i]
            if last is not None:
                B = self.across[:, i - 1]
                block = block - B.mT @ torch.cholesky_solve(B, last)
            last, failed = torch.linalg.cholesky_ex(0.5 * (block + block.mT))
            self.definite &= failed == 0
            bad = (failed != 0)[:, None, None]
            last = torch.where(bad, torch.eye(d).to(curve), last)
            self.factors.append(last)

    def solve(self, g: Tensor) -> Tensor:
        """H⁻¹g for slopes of the inner points, ``(P, n - 2, d)``."""
        y: list[Any] = []
        for i, L in enumerate(self.factors):
            right = g[:, i]
            if i:
                right = right - (self.across[:, i - 1].mT @ y[-1][..., None])[..., 0]
            y.append(torch.cholesky_solve(right[..., None], L)[..., 0])
        for i in range(len(y) - 2, -1, -1):
            back = self.across[:, i] @ y[i + 1][..., None]
            y[i] = y[i] - torch.cholesky_solve(back, self.factors[i])[..., 0]
        return torch.stack(y, 1)


@torch.no_grad()
def polished(metric: RiemannianMetric, curve: Tensor, tol: float) -> tuple[Tensor, Tensor]:
    """Curves moved to the minimum next to them, as far as numbers tell, and which arrived there.

    A step that raises the energy, or a Hessian that is not definite, leaves a curve where it is.
    """
    curve = curve.clone()
    energy, slope = curve_slopes(metric, curve)
    scale = energy.sqrt().clamp(min=torch.finfo(curve.dtype).tiny)
    arrived = _flat(slope, scale, tol)
    left = (~arrived).nonzero()[:, 0]
    for _ in range(STEPS):
        if not len(left):
            break
        hessian = Hessian(metric, curve[left])
        going = hessian.definite.clone()
        for _ in range(CHORDS):
            new = curve[left]
            new[:, 1:-1] -= hessian.solve(slope[left][:, 1:-1])
            e, g = curve_slopes(metric, new)
            # near the minimum energies agree to rounding: then a smaller slope decides
            lower = e <= energy[left] * (1 + 1e-9)
            lower &= (e < energy[left] * (1 - 1e-9)) | (_size(g) < 0.5 * _size(slope[left]))
            lower &= torch.isfinite(g).all(-1).all(-1)
            going &= lower
            if not bool(going.any()):
                break
            took = left[going]
            curve[took], energy[took], slope[took] = new[going], e[going], g[going]
        arrived[left] = _flat(slope[left], scale[left], tol)
        # those that no step moved stay as they are
        left = left[~arrived[left] & hessian.definite]
    return curve, arrived


def _size(slope: Tensor) -> Tensor:
    return slope[:, 1:-1].abs().amax((1, 2))


def _flat(slope: Tensor, scale: Tensor, tol: float) -> Tensor:
    return _size(slope) <= tol * scale
