r"""The objective of one output of a generalised linear model and steps that lower it.

.. math:: J(\theta) = \frac{1}{\sum_i w_i}\Bigl(\sum_i w_i\,\tfrac12 d(y_i, \mu_i)
          + \tfrac\lambda2\|W\|^2\Bigr), \qquad
          (X^\top H X + \lambda)\,\Delta = -(X^\top g + \lambda W) .
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf, dpotrs
from torch import Tensor

from groundstate.errors import DataError
from groundstate.learn.solvers.glm.irls_rows import Array, Rows, over_shards
from groundstate.math.distributions.links import Link
from groundstate.math.losses.deviance import Deviance
from groundstate.math.losses.pointwise_numba import pointwise

WEAK = 1e-6  # smallest pivot of a unit-diagonal factor that is trusted
WEAK_SINGLE = 1e-2


@dataclass
class Target:
    """One output: its loss, values, weights and offsets, float64, ``(n,)`` each; no weights: empty."""

    loss: Deviance
    y: Array
    w: Array
    offset: Array | None

    @property
    def link(self) -> Link:
        return self.loss.link

    def evaluate(self, eta: Array, g: Array, h: Array) -> float:
        """Summed loss over all shards; slopes and curvatures are written into ``g`` and ``h``."""
        numbers = self.loss.compiled
        if numbers is not None:
            local = pointwise(*numbers, eta, self.y, self.w, g, h)
        else:
            local = self._plain(torch.from_numpy(eta), torch.from_numpy(self.y), g, h)
        (total,) = over_shards(np.float64(local))
        return float(total)

    def _plain(self, eta: Tensor, y: Tensor, g: Array, h: Array) -> float:
        """The same for families and links that are not compiled."""
        w = torch.from_numpy(self.w) if len(self.w) else torch.ones_like(y)
        slope, curvature = self.loss.derivatives(eta, y)
        g[:], h[:] = (w * slope).numpy(), (w * curvature).numpy()
        total = float(torch.dot(w, self.loss.value(eta, y)))
        return total if math.isfinite(total) else math.inf

    def average(self) -> tuple[float, float]:
        """Weighted means of y and of the offset."""
        w = self.w if len(self.w) else np.ones(len(self.y))
        other = 0.0 if self.offset is None else float(w @ self.offset)
        total, y, o = over_shards(w.sum(), np.float64(w @ self.y), np.float64(other))
        return float(y) / float(total), float(o) / float(total)


class System:
    """θ of one output, the scores of the rows, and their loss."""

    def __init__(
        self, rows: Rows, target: Target, theta: Array, ridge: float, total: float, cold: bool
    ) -> None:
        self.rows, self.target, self.total = rows, target, total
        self.ridge = np.full(rows.size, ridge)
        if rows.intercept:
            self.ridge[-1] = 0.0
        self.g, self.h = np.empty(len(target.y)), np.empty(len(target.y))
        self._g, self._h = np.empty_like(self.g), np.empty_like(self.h)  # of a trial step
        self.theta = theta
        self.factor: Any = None
        self.pairs: list[tuple[Array, Array, float]] = []  # moves since the factor was made
        self.last: tuple[Array, Array] | None = None
        self.promised = math.inf  # by the last step, as its full length saw it
        if cold and rows.intercept:
            self._start_at_the_mean()
        self.eta = self._scores(self.theta)
        self.loss = target.evaluate(self.eta, self.g, self.h)
        if not math.isfinite(self.loss):
            self._start_at_the_data()
        self.value = self._objective(self.loss, self.theta)

    def _start_at_the_mean(self) -> None:
        y, offset = self.target.average()
        low, high = self.target.link.low, self.target.link.high
        inside = min(max(y, low + 1e-8), high - 1e-8)
        score = float(self.target.link.link(torch.tensor(inside, dtype=torch.float64)))
        self.theta[-1] = score - offset if math.isfinite(score) else 0.0

    def _start_at_the_data(self) -> None:
        """One least-squares fit to the scores of values halfway between y and its mean."""
        mean = self.target.average()[0]
        halfway = torch.from_numpy(0.5 * (self.target.y + mean))
        score = self.target.link.link(halfway).numpy()
        if self.target.offset is not None:
            score = score - self.target.offset
        w = self.target.w if len(self.target.w) else np.ones(len(score))
        right, gram = self.rows.sums(w * score, w)
        assert gram is not None
        found = np.linalg.lstsq(gram + np.diag(self.ridge), right, rcond=None)[0]
        self.theta = found.astype(np.float64)
        self.eta = self._scores(self.theta)
        self.loss = self.target.evaluate(self.eta, self.g, self.h)
        if not math.isfinite(self.loss):
            raise DataError(
                f"no start was found where the link {self.target.link.name!r} gives means that the "
                f"family {self.target.loss.family.name!r} allows; use link='log' or fit an intercept"
            )

    def _scores(self, theta: Array) -> Array:
        if self.rows.intercept and not theta[:-1].any():
            eta = np.full(len(self.target.y), theta[-1])
        else:
            eta = self.rows.score(theta)
        return eta if self.target.offset is None else eta + self.target.offset

    def _objective(self, loss: float, theta: Array) -> float:
        return (loss + 0.5 * float(theta @ (self.ridge * theta))) / self.total

    def at(self, theta: Array) -> tuple[float, Array]:
        """J and its gradient anywhere, for L-BFGS."""
        self.theta, self.eta = theta.copy(), self._scores(theta)
        self.loss = self.target.evaluate(self.eta, self.g, self.h)
        self.value = self._objective(self.loss, theta)
        if not math.isfinite(self.value):
            return math.inf, np.zeros_like(theta)
        return self.value, self.gradient(False)

    def units(self) -> Array:
        """Of the entries of θ: one over the root of their curvature at the start, about."""
        mean = float(over_shards(self.h.sum())[0])
        mean = mean if mean > 0 else 1.0
        count = float(over_shards(np.float64(len(self.h)))[0])
        curvature = (self.rows.squares() * mean / count + self.ridge) / self.total
        return np.asarray(1.0 / np.sqrt(np.where(curvature > 0, curvature, 1.0)))

    def gradient(self, curvature: bool) -> Array:
        """∇J; with ``curvature`` the factor of the Hessian is renewed as well."""
        right, gram = self.rows.sums(self.g, self.h if curvature else None)
        if gram is not None:
            self.pairs.clear()
            self.last = None
            self.factor = Factor(gram, self.ridge, WEAK if self.rows.exact else WEAK_SINGLE)
            if self.factor.weak and not self.rows.exact:
                self.rows.exact = True
                return self.gradient(True)
        return (right + self.ridge * self.theta) / self.total

    def _direction(self, gradient: Array) -> Array:
        """−H⁻¹∇J; an old factor is brought up to date by the moves since (L-BFGS)."""
        if self.last is not None:
            s, v = self.theta - self.last[0], (gradient - self.last[1]) * self.total
            if float(s @ v) > 1e-12 * float(v @ v) ** 0.5 * float(s @ s) ** 0.5:
                self.pairs.append((s, v, 1 / float(s @ v)))
        self.last = self.theta, gradient
        move, kept = -gradient * self.total, []
        for s, v, r in reversed(self.pairs):
            kept.append(r * float(s @ move))
            move = move - kept[-1] * v
        move = self.factor.solve(move)
        for (s, v, r), a in zip(self.pairs, reversed(kept), strict=True):
            move = move + (a - r * float(v @ move)) * s
        return move

    def step(self, gradient: Array) -> bool:
        """One damped step along −H⁻¹∇J; False when no descent is left or found."""
        move = self._direction(gradient)
        slope = float(move @ gradient)
        self.promised = abs(slope)
        if not slope < 0:
            return False
        ahead = self.rows.score(move)
        noise = 4e-16 * abs(self.value)
        size = 1.0
        for _ in range(40):
            theta, eta = self.theta + size * move, self.eta + size * ahead
            loss = self.target.evaluate(eta, self._g, self._h)
            value = self._objective(loss, theta)
            if value <= self.value + 1e-4 * size * slope + noise:
                moved = value < self.value
                self.theta, self.eta, self.loss, self.value = theta, eta, loss, value
                self.g, self._g, self.h, self._h = self._g, self.g, self._h, self.h
                return moved
            size *= 0.5
        return False


class Factor:
    """A Cholesky factor of XᵀHX + λ with unit diagonal; eigenvalues where that is singular."""

    def __init__(self, gram: Array, ridge: Array, trusted: float) -> None:
        diagonal = gram.diagonal() + ridge
        self.scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        unit = gram / self.scale[:, None] / self.scale
        unit.reshape(-1)[:: len(unit) + 1] = np.where(diagonal > 0, 1.0, 0.0)
        self.lower, failed = dpotrf(unit, lower=1)
        pivots = self.lower.diagonal()
        self.weak = bool(failed) or not float(pivots.min(initial=1.0)) > trusted
        if self.weak:
            values, self.vectors = np.linalg.eigh(unit)
            kept = values > 1e-11 * max(1.0, float(values[-1]))
            self.gain = np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)

    def solve(self, right: Array) -> Array:
        right = right / self.scale
        if self.weak:
            found: Array = self.vectors @ (self.gain * (self.vectors.T @ right))
        else:
            found = dpotrs(self.lower, right, lower=1)[0]
        return found / self.scale
