"""The state of a sparse soft-min while it is solved: weights, scores, the gap, one Newton step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.special import xlogy

from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import Problem
from groundstate.learn.penalties.norms import L1, ElasticNet
from groundstate.learn.solvers.lasso.feature_sign import feature_sign
from groundstate.learn.solvers.lasso.moments import designs_of
from groundstate.learn.solvers.lasso.path import solve_path
from groundstate.learn.solvers.linear.least_squares_sums import is_sparse, scipy_rows
from groundstate.learn.solvers.logistic.softmax import hessian, losses, probabilities

JOINT = 400  # unknowns up to which all classes move at once


class SparseLogit:
    """Weights ``W`` (R, p), intercepts ``b`` (R,) and scores ``F`` (R, n); R is 1 for two classes.

    Attributes
    ----------
    lam, mu : strengths of |θ| and θ²/2, in units of the summed loss
    alive : columns not yet proved to be zero, ``(p,)``
    at_zero : the objective at W = 0 with the best intercepts
    total : the summed weight
    """

    def __init__(self, problem: Problem) -> None:
        energy, penalty = problem.energy, problem.penalty
        assert isinstance(energy, LinearEnergy) and isinstance(penalty, L1 | ElasticNet)
        self.energy = energy
        ratio = penalty.l1_ratio if isinstance(penalty, ElasticNet) else 1.0
        k = energy.W.shape[0]
        self.binary = k == 2
        # θ = W₁ − W₀ and W₀ = −W₁: |W₀| + |W₁| = |θ|, (W₀² + W₁²)/2 = θ²/4
        self.lam = float(penalty.strength) * ratio
        self.mu = float(penalty.strength) * (1 - ratio) * (0.5 if self.binary else 1.0)
        x, y = problem.resident["x"].detach().cpu(), problem.resident["y"].detach().cpu()
        w = problem.sample_weight
        self.w = np.ones(len(y)) if w is None else w.detach().double().cpu().numpy()
        self.sparse = is_sparse(x)
        self.x: Any = scipy_rows(x).astype(np.float64) if self.sparse else x.double().numpy()
        kept = self.w > 0
        if not kept.all():
            self.x, y, self.w = self.x[kept], y[kept], self.w[kept]
        self.y = y.numpy()
        self.columns: Any = self.x.tocsc() if self.sparse else self.x
        self.total = float(self.w.sum())
        n = len(self.y)
        self.target = np.zeros((1 if self.binary else k, n))
        if self.binary:
            self.target[0] = self.y
        else:
            self.target[self.y, np.arange(n)] = 1.0
        self.intercept = energy.b is not None
        W = energy.W.detach().double().cpu().numpy()
        self.W = W[1:] - W[:1] if self.binary else W.copy()
        self.b = np.zeros(len(self.W))
        self.at_zero = self._at_zero()
        if energy.b is not None and self.W.any():
            b = energy.b.detach().double().cpu().numpy()
            self.b = b[1:] - b[:1] if self.binary else b - b.mean()
        self.F = self._scores()
        square = self.columns.multiply(self.columns).T if self.sparse else np.square(self.x).T
        self.lengths = np.sqrt(0.5 * np.asarray(square @ self.w).ravel())
        self.alive = self.lengths > 0
        # of Xᵀr, whose r has an absolute error of rounding in every row
        self.rounding = 4 * np.finfo(np.float64).eps * np.asarray(abs(self.columns).T @ self.w)

    def _scores(self) -> Any:
        F = np.ascontiguousarray((self.x @ self.W.T).T)
        F += self.b[:, None]
        return F

    def _at_zero(self) -> float:
        share = (self.target @ self.w) / self.total
        if self.binary:
            share = np.array([1 - share[0], share[0]])
        if not self.intercept:
            return self.total * float(np.log(len(share)))
        with np.errstate(divide="ignore"):
            b = np.log(share)
        self.b = b[1:] - b[:1] if self.binary else b - b.mean()
        return -self.total * float(xlogy(share, share).sum())

    def probabilities(self) -> Any:
        return probabilities(self.F)

    def loss(self, F: Any) -> float:
        return float(self.w @ losses(F, self.y))

    def primal(self, F: Any, W: Any) -> float:
        size = float(abs(W).sum())
        return self.loss(F) + self.lam * size + 0.5 * self.mu * float((W * W).sum())

    def balance(self) -> None:
        """Newton on the intercepts alone, until the residuals of every class sum to zero."""
        if not self.intercept:
            return
        for _ in range(20):
            p = self.probabilities()
            slope = (self.target - p) @ self.w
            if abs(slope).max() <= 1e-13 * self.total:
                return
            wp = p * self.w
            if self.binary:
                step = slope / max(float((wp * (1 - p)).sum()), 1e-12 * self.total)
            else:
                H = np.diag(wp.sum(1)) - wp @ p.T + self.total / len(p)
                step = np.linalg.lstsq(H, slope, rcond=None)[0]
            step = np.clip(step, -4.0, 4.0)
            self.b += step
            self.F += step[:, None]

    def correlations(self) -> Any:
        """Xᵀr of every class, ``(R, p)``."""
        r = (self.target - self.probabilities()) * self.w
        return np.asarray((self.columns.T @ r.T).T if self.sparse else r @ self.x)

    def gap(self, g: Any) -> tuple[float, float, float]:
        """Objective, duality gap and the scale τ of the dual point.

        By how much a correlation passes λ is known up to rounding, which for columns in tiny units is more
        than λ itself; the dual point is feasible up to that.
        """
        top = float((abs(g - self.mu * self.W) - self.rounding).max())
        tau = min(1.0, self.lam / top) if top > 0 else 1.0
        q = self.target - tau * (self.target - self.probabilities())
        entropy = xlogy(q, q).sum(0)
        if self.binary:
            entropy += xlogy(1 - q[0], 1 - q[0])
        dual = -float(self.w @ entropy) - 0.5 * tau**2 * self.mu * float((self.W**2).sum())
        primal = self.primal(self.F, self.W)
        return primal, max(primal - dual, 0.0), tau

    def screen(self, g: Any, gap: float, tau: float) -> None:
        """Leave out the columns that the gap proves to be zero in every class."""
        reach = tau * abs(g - self.mu * self.W).max(0)
        length = np.sqrt(self.lengths**2 + 0.5 * self.mu * 4) if self.mu else self.lengths
        dead = self.alive & (reach + length * np.sqrt(gap) < self.lam)
        if (self.W[:, dead] != 0).any():
            self.W[:, dead] = 0.0
            self.F = self._scores()
        self.alive &= ~dead

    def newton(self, chosen: Any, slack: float) -> bool:
        """One proximal Newton step on some columns; False when it moves nothing.

        With few unknowns all classes move at once on the whole Hessian, else one after the other.
        """
        if len(self.W) * len(chosen) <= JOINT:
            return self._together(chosen)
        x = self.columns[:, chosen]
        rows = x if self.sparse else torch.from_numpy(np.ascontiguousarray(x))
        before = value = self.primal(self.F, self.W)
        for k in range(len(self.W)):
            p = self.probabilities()[k]
            h = np.maximum(self.w * p * (1 - p), 1e-9 * self.w)
            z = self.F[k] + self.w * (self.target[k] - p) / h
            weight, response = torch.from_numpy(h), torch.from_numpy(z)[:, None]
            design = designs_of(rows, response, weight, self.intercept, 1, "auto")[0]
            found = solve_path(
                design, [(self.lam, self.mu)], tol=slack / max(design.yy, 1e-300),
                start=self.W[k, chosen],
            )  # fmt: skip
            w = found.coefs[:, 0]
            b = design.mean_y - float(design.mean_x @ w) if self.intercept else 0.0
            dw, db = w - self.W[k, chosen], b - self.b[k]
            ahead = np.asarray(x @ dw).ravel() + db
            value = self._searched([k], chosen, dw[None], np.array([db]), ahead[None], value)
        return before - value > 1e-13 * abs(before)

    def _searched(
        self, classes: list[int], chosen: Any, dw: Any, db: Any, ahead: Any, value: float
    ) -> float:
        """Halve the step until the objective falls; the objective."""
        step = 1.0
        for _ in range(30):
            F, W = self.F.copy(), self.W.copy()
            F[classes] += step * ahead
            W[np.ix_(classes, chosen)] += step * dw
            new = self.primal(F, W)
            if new <= value + 1e-14 * abs(value):  # the objective is known to rounding only
                self.F, self.W = F, W
                self.b[classes] += step * db
                return new
            step *= 0.5
        return value

    def _together(self, chosen: Any) -> bool:
        """All classes at once: the quadratic model as a regression known by its sums."""
        r, m = len(self.W), len(chosen)
        x = self.columns[:, chosen]
        x = x.toarray() if self.sparse else x
        p, d = self.probabilities(), m + 1
        # about the means, where rounding in the products costs least
        mean = self.w @ x / self.total if self.intercept else np.zeros(m)
        x = x - mean
        rows = np.hstack([x, np.ones((len(x), 1))])
        H = hessian(rows, p, self.w)
        slope = ((self.target - p) * self.w) @ rows  # (r, d)
        level = self.b + self.W[:, chosen] @ mean
        theta = np.column_stack([self.W[:, chosen], level]).ravel()
        q = H @ theta + slope.ravel()
        free = np.arange(d - 1, r * d, d)
        kept = np.setdiff1d(np.arange(r * d), free)
        G, c, back = H[np.ix_(kept, kept)], q[kept], None
        if self.intercept:  # intercepts are solved for throughout
            # all of them shifted alike change nothing: that direction is rounding
            inner = np.linalg.pinv(H[np.ix_(free, free)], rcond=1e-12, hermitian=True)
            cross = H[np.ix_(kept, free)]
            G, c = G - cross @ inner @ cross.T, c - cross @ (inner @ q[free])
            back = lambda w: inner @ (q[free] - cross.T @ w)  # noqa: E731
        # a little damping: rounding must not make the model indefinite
        damp = 1e-9 * np.maximum(G.diagonal(), 0.0) + 1e-300
        G[np.diag_indices_from(G)] += damp + self.mu
        w = feature_sign(G, c + damp * theta[kept], self.lam, theta[kept])
        if not np.isfinite(w).all():
            return False
        dw = w.reshape(r, m) - self.W[:, chosen]
        rise = back(w) - level if back is not None else np.zeros(r)
        before = self.primal(self.F, self.W)
        ahead = dw @ x.T + rise[:, None]
        value = self._searched([*range(r)], chosen, dw, rise - dw @ mean, ahead, before)
        return before - value > 1e-13 * abs(before)

    def store(self) -> None:
        W, b = torch.from_numpy(self.W), torch.from_numpy(self.b - self.b.mean())
        if self.binary:
            W, b = torch.cat([-W / 2, W / 2]), torch.from_numpy(np.r_[-self.b / 2, self.b / 2])
        self.energy.W.copy_(W)
        if self.energy.b is not None:
            self.energy.b.copy_(b)
