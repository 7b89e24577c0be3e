r"""Smoothing splines: the smoothest curve that is close enough to the data."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar

from groundstate.compute.reduce import current
from groundstate.energy.basic import SquaredEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.linear.spline_numba import smoother
from groundstate.nn.blocks.natural_splines import NaturalSplines
from groundstate.registry import solvers

Array = NDArray[np.float64]


@solvers.register(
    formula=r"\min_g \sum_i w_i(y_i - g(x_i))^2 + \lambda\int g''^2",
    make=lambda energy: SplineSmoothing(),
)
@dataclass(frozen=True)
class SplineSmoothing:
    r"""Minimise :math:`\sum_i w_i(y_i - b - \sum_j g_j(x_{ij}))^2 + \lambda\sum_j\int g_j''^2`.

    One column is solved exactly. Several are fitted in turn, each to what the others leave
    (backfitting). Rows with equal x are merged into their weighted mean.

    Parameters
    ----------
    lam : λ; None chooses it for each column by generalised cross-validation
    max_iter : rounds over the columns at most
    tol : largest change of a fitted value at the end, relative to the spread of y
    """

    lam: float | None = None
    max_iter: int = 20
    tol: float = 1e-4

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, SquaredEnergy) or not isinstance(energy.net, NaturalSplines):
            return "it is for a squared energy whose prediction is a sum of natural splines"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"} or energy.m != 1:
            return "it needs resident x and one output y"
        if problem.penalty is not None:
            return "its penalty is the roughness of the curves"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, SquaredEnergy) and isinstance(energy.net, NaturalSplines)
        history = History(solver="SplineSmoothing", converged=True, stop="settled")
        rows, weight = problem.resident["x"], problem.sample_weight
        weight = rows.new_ones(len(rows)) if weight is None else weight
        shares = (rows, problem.resident["y"][:, 0], weight)
        x, y, w = (current().gather(v.double()).cpu().numpy() for v in shares)  # knots are rows
        columns = [_Column(x[:, j], w) for j in range(x.shape[1])]
        b = float(w @ y) / float(w.sum())
        spread = math.sqrt(float(w @ (y - b) ** 2) / float(w.sum()))
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            for _ in range(self.max_iter):
                start, moved = time.perf_counter(), 0.0
                whole = b + sum((c.fitted for c in columns), np.zeros(len(y)))
                for column in columns:
                    rest = y - whole + column.fitted
                    change = column.smooth(rest, self.lam)
                    whole = whole + change
                    moved = max(moved, float(np.abs(change).max(initial=0.0)))
                _store(energy.net, columns, b)
                value = 0.5 * float(w @ (y - whole) ** 2) / float(w.sum())
                history.objective.append(value)
                history.seconds.append(time.perf_counter() - start)
                settled = len(columns) == 1 or moved <= self.tol * spread
                if monitor.epoch(value) or settled:
                    return history
        history.converged, history.stop = False, "max_iter"
        return history


def _store(splines: NaturalSplines, columns: list[_Column], b: float) -> None:
    parts = [
        tuple(torch.from_numpy(v) for v in (c.knots, c.values, c.slopes)) for c in columns
    ]  # each (K,)
    splines.set(parts, b)  # type: ignore[arg-type]


class _Column:
    """One column: its distinct values and a natural spline through them, of mean zero."""

    def __init__(self, x: Array, w: Array) -> None:
        self.w = w
        self.knots, self.at = np.unique(x[w > 0], return_inverse=True)
        self.used = w > 0
        self.weight = np.bincount(self.at, w[self.used], len(self.knots)).astype(np.float64)
        self.values, self.slopes = np.zeros(len(self.knots)), np.zeros(len(self.knots))
        self.fitted = np.zeros(len(x))

    def smooth(self, rest: Array, lam: float | None) -> Array:
        """Fit to ``rest``; the change of the fitted values of all rows."""
        total = np.bincount(self.at, (self.w * rest)[self.used], len(self.knots))
        values, slopes = smoothing_spline(self.knots, total / self.weight, self.weight, lam)
        values = values - float(self.weight @ values) / float(self.weight.sum())
        self.values, self.slopes = values, slopes
        change = np.zeros(len(self.fitted))
        change[self.used] = values[self.at] - self.fitted[self.used]
        self.fitted = self.fitted + change
        return change


def smoothing_spline(t: Array, y: Array, w: Array, lam: float | None) -> tuple[Array, Array]:
    r"""Values and slopes, at increasing knots, of the minimiser of
    :math:`\sum_i w_i(y_i - g(t_i))^2 + \lambda\int g''^2`; λ by cross-validation when None.

    g is the posterior mean of a line plus an integrated Wiener process of variance 1/λ, computed by
    one pass forward and one back (a Kalman smoother), stable for close knots and for any λ.

    Examples
    --------
    >>> t = np.arange(6.0)
    >>> g, slope = smoothing_spline(t, t**2, np.ones(6), 1e12)  # very stiff: a least-squares line
    >>> np.allclose(g, 5 * t - 10 / 3), np.allclose(slope, 5)
    (True, True)
    """
    if len(t) < 3:
        slope = (y[-1] - y[0]) / (t[-1] - t[0]) if len(t) == 2 else 0.0
        return y.copy(), np.full(len(t), slope)
    width, level = float(t[-1] - t[0]), float(w.mean())
    u, v = (t - t[0]) / width, w / level  # without units
    if lam is None:
        strength = _cross_validated(u, y, v)
    else:
        strength = lam / level / width**3
    if strength == 0:
        return y.copy(), np.asarray(CubicSpline(t, y, bc_type="natural")(t, 1))
    values, slopes, _, _ = smoother(u, y, v, strength)
    return values, slopes / width


def _cross_validated(t: Array, y: Array, w: Array) -> float:
    """λ that minimises n·RSS/(n − tr S)²."""

    def lost(power: float) -> float:
        _, _, rss, free = smoother(t, y, w, 10.0**power)
        return float(rss / max(free, 1e-9) ** 2)

    grid = np.linspace(-12.0, 6.0, 37)
    best = int(np.argmin([lost(p) for p in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lost, bounds=ends, method="bounded", options={"xatol": 1e-4})
    return float(10.0 ** float(found.x))
