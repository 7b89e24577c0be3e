r"""Shortest curves under a metric: the discrete energy of all pairs and starts, lowered at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.math.distances.graph_paths import graph_paths
from groundstate.math.distances.riemannian import RiemannianMetric
from groundstate.math.optim.batched_lbfgs import descend

STARTS = ("line", "bumps", "graph")
CURVES = 2**18  # points of curves that are moved together


@dataclass(frozen=True, repr=False)
class Geodesic(Displayed):
    """Shortest curves between points.

    Attributes
    ----------
    points : ``(..., n, d)``, at constant speed
    length : ``(...,)``, under the metric
    energy : ``(...,)``, half the squared length for a curve of constant speed
    converged : ``(...,)``, whether no step lowered the energy any more
    """

    points: Any
    length: Any
    energy: Any
    converged: Any

    def _facts(self) -> dict[str, object]:
        return {"points": tuple(self.points.shape), "length": self.length}


@takes_arrays("a", "b")
def geodesic(
    metric: RiemannianMetric,
    a: Any,
    b: Any,
    n: int = 41,
    *,
    starts: Sequence[str] = STARTS,
    max_iter: int = 200,
    tol: float = 1e-4,
) -> Geodesic:
    r"""Shortest curves from a to b: the least discrete energy

    .. math:: E = \tfrac N2\sum_{i=1}^N\Delta_i^\top M(m_i)\,\Delta_i, \qquad N = n - 1,

    with steps :math:`\Delta_i` and midpoints :math:`m_i`, over the inner points. All pairs and starts
    are lowered together by L-BFGS in sine waves, where the energy of a constant metric is round; of the
    starts the lowest is kept.

    Parameters
    ----------
    metric : for any pair of points, also ones that nothing was fitted to
    a, b : ``(..., d)``, one of them may be a single point
    n : points of a curve, with its ends
    starts : of "line", "bumps" (the line bent to either side) and "graph" (the shortest path over
        neighbouring rows of the metric's data)
    max_iter : steps of L-BFGS
    tol : of the slope, relative to the root of the energy of the line

    Examples
    --------
    >>> from groundstate.math.distances import ConstantMetric
    >>> found = geodesic(ConstantMetric([[4.0, 0.0], [0.0, 1.0]]), [0.0, 0.0], [1.0, 0.0], 5)
    >>> found.points[:, 0].round(6).tolist(), round(found.length, 6)
    ([0.0, 0.25, 0.5, 0.75, 1.0], 2.0)
    """
    unknown = [s for s in starts if s not in STARTS]
    if unknown or not starts:
        raise ValueError(f"starts are chosen from {', '.join(STARTS)}, got {tuple(starts)}")
    if n < 3:
        raise ValueError(f"a curve needs n >= 3 points, got {n}")
    if a.shape[-1] != b.shape[-1] or a.ndim < 1:
        raise ShapeError(
            f"a and b need points of one width, got {tuple(a.shape)}, {tuple(b.shape)}"
        )
    b = b.to(a.dtype)
    lead = torch.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    d = a.shape[-1]
    first, last = (p.detach().expand(*lead, d).reshape(-1, d) for p in (a, b))
    each = max(1, CURVES // (n * 4))
    parts = [
        _lowered(metric, p, q, n, tuple(starts), max_iter, tol)
        for p, q in zip(first.split(each), last.split(each), strict=True)
    ]
    points, energy, converged = (torch.cat(part) for part in zip(*parts, strict=True))
    with torch.no_grad():
        length = metric.length(points)
    return Geodesic(
        points.reshape(*lead, n, d),
        length.reshape(lead),
        energy.reshape(lead),
        converged.reshape(lead),
    )


def _lowered(
    metric: RiemannianMetric, a: Tensor, b: Tensor, n: int, starts: tuple[str, ...], max_iter: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Curves ``(P, n, d)``, energies and flags ``(P,)``."""
    P, d = a.shape
    t = torch.linspace(0, 1, n, dtype=a.dtype, device=a.device)[:, None]
    line = a[:, None] + t * (b - a)[:, None]  # (P, n, d)
    curves, pairs = _started(metric, line, starts)
    to_points, to_waves = (m.to(a) for m in waves(n))
    lines = line[pairs]
    with torch.no_grad():
        scale = curve_energy(metric, line).clamp(min=torch.finfo(a.dtype).tiny).sqrt()[pairs]
        w = (to_waves @ (curves - lines)[:, 1:-1]) / scale[:, None, None]

    def value_and_grad(u: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        base, size = (lines, scale) if rows is None else (lines[rows], scale[rows])
        with torch.enable_grad():
            v = u.detach().requires_grad_()
            inner = to_points @ v.reshape(len(u), n - 2, d) * size[:, None, None]
            curve = torch.cat([base[:, :1], base[:, 1:-1] + inner, base[:, -1:]], 1)
            energy = curve_energy(metric, curve) / size.square()
            (g,) = torch.autograd.grad(energy.sum(), v)
        return energy.detach(), g

    bound = torch.full(((n - 2) * d,), math.inf, dtype=a.dtype, device=a.device)
    found = descend(
        value_and_grad, w.reshape(len(w), -1), low=-bound, high=bound, max_iter=max_iter, tol=tol
    )
    energy = found.value * scale.square()
    # the lowest start of every pair, the first of equals
    best = torch.full((P,), math.inf, dtype=a.dtype, device=a.device)
    best = best.scatter_reduce(0, pairs, energy, "amin")
    index = torch.arange(len(pairs), device=a.device)
    won = torch.full((P,), len(pairs), dtype=torch.int64, device=a.device)
    won = won.scatter_reduce(0, pairs[energy <= best[pairs]], index[energy <= best[pairs]], "amin")
    inner = to_points @ found.point[won].reshape(P, n - 2, d) * scale[won][:, None, None]
    curve = line.clone()
    curve[:, 1:-1] += inner
    return curve, energy[won], found.converged[won]


def curve_energy(metric: RiemannianMetric, curve: Tensor) -> Tensor:
    r""":math:`\tfrac N2\sum_i\Delta_i^\top M(m_i)\Delta_i` of curves ``(P, n, d)``, ``(P,)``."""
    P, n, d = curve.shape
    step, middle = curve.diff(dim=1), 0.5 * (curve[:, 1:] + curve[:, :-1])
    square = metric.quadratic(middle.reshape(-1, d), step.reshape(-1, d))
    return 0.5 * (n - 1) * square.reshape(P, n - 1).sum(1)


@lru_cache(maxsize=16)
def waves(n: int) -> tuple[Tensor, Tensor]:
    """Inner points from waves and back, both ``(n-2, n-2)``: the energy of unit waves is one half."""
    N = n - 1
    k = np.arange(1, N)
    Q = math.sqrt(2 / N) * np.sin(np.pi * np.outer(k, k) / N)
    root = np.sqrt(N) * 2 * np.sin(np.pi * k / (2 * N))
    return torch.from_numpy(Q / root), torch.from_numpy(root[:, None] * Q)


def _started(
    metric: RiemannianMetric, line: Tensor, starts: tuple[str, ...]
) -> tuple[Tensor, Tensor]:
    """First curves ``(S, n, d)`` and the pairs they belong to ``(S,)``."""
    P, n, d = line.shape
    every = torch.arange(P, device=line.device)
    curves, pairs = [], []
    if "line" in starts:
        curves.append(line)
        pairs.append(every)
    if "bumps" in starts and d > 1:
        gap = line[:, -1] - line[:, 0]
        side = _sideways(metric, gap)
        arch = torch.linspace(0, math.pi, n, dtype=line.dtype, device=line.device).sin()
        bump = 0.5 * gap.norm(dim=1)[:, None, None] * arch[:, None] * side[:, None]
        curves += [line + bump, line - bump]
        pairs += [every, every]
    if "graph" in starts and metric.rows is not None:
        paths, which = graph_paths(metric, line[:, 0], line[:, -1], n)
        curves.append(paths)
        pairs.append(which)
    if not curves:
        curves, pairs = [line], [every]
    return torch.cat(curves), torch.cat(pairs)


def _sideways(metric: RiemannianMetric, gap: Tensor) -> Tensor:
    """Unit vectors across the line, in the direction in which the metric's rows spread most."""
    unit = gap / gap.norm(dim=1, keepdim=True).clamp(min=torch.finfo(gap.dtype).tiny)
    d = gap.shape[1]
    axes = torch.eye(d, dtype=gap.dtype, device=gap.device)
    if metric.rows is not None and len(metric.rows) > 1:
        centred = metric.rows.to(gap) - metric.rows.to(gap).mean(0)
        axes = torch.linalg.eigh(centred.T @ centred)[1].flip(1).T
    # the first axis that is not the line's own
    across = axes[None] - unit[:, None] * (unit @ axes.T)[..., None]  # (P, d, d)
    length = across.norm(dim=2)
    pick = (length > 0.5).to(torch.int8).argmax(1)
    at = torch.arange(len(gap), device=gap.device)
    return across[at, pick] / length[at, pick][:, None]
