r"""Shortest curves under a metric: the discrete energy of all pairs and starts, lowered at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.math.distances.curve_newton import curve_slopes, polished
from groundstate.math.distances.graph_paths import graph_paths
from groundstate.math.distances.riemannian import RiemannianMetric
from groundstate.math.optim.batched_lbfgs import Descent, descend

STARTS = ("line", "bumps", "graph")
CURVES = 2**18  # points of curves that are moved together
ROUGH = 1e-3  # where Newton's method takes over
SAME = 1e-6  # of an energy: two starts have ended alike
FEW = 17  # points with which starts are compared
FINE = 1e-4  # Newton's steps gain many digits at once


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
    starts: Sequence[str] | Any = STARTS,
    max_iter: int = 200,
    tol: float = 1e-6,
) -> Geodesic:
    r"""Shortest curves from a to b: the least discrete energy

    .. math:: E = \tfrac N2\sum_{i=1}^N\Delta_i^\top M(m_i)\,\Delta_i, \qquad N = n - 1,

    with steps :math:`\Delta_i` and midpoints :math:`m_i`, over the inner points. All pairs and starts
    are lowered together by L-BFGS in sine waves, where the energy of a constant metric is round; the
    lowest start of each pair is kept and moved to its minimum by Newton's method, so that a curve does
    not depend on the others.

    Parameters
    ----------
    metric : for any pair of points, also ones that nothing was fitted to
    a, b : ``(..., d)``, one of them may be a single point
    n : points of a curve, with its ends
    starts : of "line", "bumps" (the line bent to either side) and "graph" (the shortest path over
        neighbouring rows of the metric's data); or a curve for each pair, ``(..., n, d)``
    max_iter : steps of L-BFGS
    tol : of the slope, relative to the root of the energy

    Examples
    --------
    >>> from groundstate.math.distances import ConstantMetric
    >>> found = geodesic(ConstantMetric([[4.0, 0.0], [0.0, 1.0]]), [0.0, 0.0], [1.0, 0.0], 5)
    >>> found.points[:, 0].round(6).tolist(), round(found.length, 6)
    ([0.0, 0.25, 0.5, 0.75, 1.0], 2.0)
    """
    given = None if _is_names(starts) else torch.as_tensor(starts)
    if given is None:
        unknown = [s for s in starts if s not in STARTS]
        if unknown or not len(starts):
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
    if given is not None and given.shape != (*lead, n, d):
        raise ShapeError(
            f"starts needs a curve for each pair, {(*lead, n, d)}, got {tuple(given.shape)}"
        )
    if not len(first):
        none = first.new_zeros(lead)
        return Geodesic(first.new_zeros(*lead, n, d), none, none, none > 0)
    ways: Any = [tuple(starts)] * (1 + len(first) // each)
    if given is not None:
        ways = given.detach().to(a).reshape(-1, n, d).split(each)
    parts = [
        _lowered(metric, p, q, n, way, max_iter, tol)
        for p, q, way in zip(first.split(each), last.split(each), ways)
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


def _is_names(starts: Any) -> bool:
    return isinstance(starts, (tuple, list)) and all(isinstance(s, str) for s in starts)


@torch.no_grad()
def _lowered(
    metric: RiemannianMetric, a: Tensor, b: Tensor, n: int, starts: Any, max_iter: int, tol: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Curves ``(P, n, d)``, energies and flags ``(P,)``.

    Starts are lowered and compared with few points; points are added to the winners.
    """
    P = len(a)
    if isinstance(starts, Tensor):
        held = torch.cat((a[:, None], starts[:, 1:-1], b[:, None]), 1)
        curve, found = _descended(metric, held, max_iter, max(tol, ROUGH))
    else:
        few = n
        while few > FEW and few % 4 == 1:
            few = few // 2 + 1
        t = torch.linspace(0, 1, few, dtype=a.dtype, device=a.device)[:, None]
        curves, pairs = _started(metric, a[:, None] + t * (b - a)[:, None], starts)
        curves, found = _descended(metric, curves, max_iter, max(tol, ROUGH))
        # the lowest start of every pair, the first of those that end alike
        energy = found.value
        best = torch.full((P,), math.inf, dtype=a.dtype, device=a.device)
        best = best.scatter_reduce(0, pairs, energy, "amin")
        index = torch.arange(len(pairs), device=a.device)
        won = torch.full((P,), len(pairs), dtype=torch.int64, device=a.device)
        alike = energy <= best[pairs] * (1 + SAME)
        won = won.scatter_reduce(0, pairs[alike], index[alike], "amin")
        curve = curves[won]
        found = replace(found, converged=found.converged[won])
        while curve.shape[1] < n:
            curve = _doubled(curve)
            curve, found = _descended(metric, curve, max_iter, max(tol, ROUGH))
    curve, arrived = polished(metric, curve, tol * FINE)
    return curve, curve_slopes(metric, curve)[0], arrived | found.converged


def _doubled(curve: Tensor) -> Tensor:
    """A curve ``(P, n, d)`` with a point in the middle of every step, ``(P, 2n - 1, d)``."""
    out = curve.new_empty(len(curve), 2 * curve.shape[1] - 1, curve.shape[2])
    out[:, ::2], out[:, 1::2] = curve, 0.5 * (curve[:, 1:] + curve[:, :-1])
    return out


def _descended(
    metric: RiemannianMetric, curve: Tensor, max_iter: int, tol: float
) -> tuple[Tensor, Descent]:
    """Curves lowered by L-BFGS in sine waves."""
    S, n, d = curve.shape
    to_points, to_waves = (m.to(curve) for m in waves(n))
    t = torch.linspace(0, 1, n, dtype=curve.dtype, device=curve.device)[:, None]
    lines = curve[:, :1] + t * (curve[:, -1:] - curve[:, :1])
    scale = curve_slopes(metric, lines)[0].clamp(min=torch.finfo(curve.dtype).tiny).sqrt()
    w = (to_waves @ (curve - lines)[:, 1:-1]) / scale[:, None, None]

    def placed(u: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        base, size = (lines, scale) if rows is None else (lines[rows], scale[rows])
        out = base.clone()
        out[:, 1:-1] += to_points @ u.reshape(len(u), n - 2, d) * size[:, None, None]
        return out, size

    def value_and_grad(u: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        at, size = placed(u, rows)
        energy, slope = curve_slopes(metric, at)
        g = to_points.T @ slope[:, 1:-1] / size[:, None, None]
        return energy / size.square(), g.reshape(len(u), -1)

    bound = torch.full(((n - 2) * d,), math.inf, dtype=curve.dtype, device=curve.device)
    found = descend(
        value_and_grad, w.reshape(S, -1), low=-bound, high=bound, max_iter=max_iter, tol=tol
    )
    return placed(found.point, None)[0], replace(found, value=found.value * scale.square())


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
    # without a path over the rows, or in one dimension without bumps, the line is left
    alone = every[~torch.isin(every, torch.cat(pairs))] if pairs else every
    curves.append(line[alone])
    pairs.append(alone)
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
