r"""All folds and strengths of logistic regression as one population of weight vectors.

The path of the mean of the folds, :math:`\bar\theta(\lambda)`, is followed on a part of the rows. Every
member begins there and moves by

.. math:: \theta_{f\lambda} \leftarrow \theta_{f\lambda}
    - (\bar H(\bar\theta(\lambda)) + \lambda I)^{-1}\,\nabla J_{f\lambda}(\theta_{f\lambda})

with exact gradients, corrected by the secant through its last step (Anderson's mixing). One product
gives the scores of all members that still move, another their gradients; a member rests when its
gradient is small.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrf, dpotri

from groundstate.learn.solvers.logistic.members import CELLS, Members
from groundstate.learn.solvers.logistic.objective import SoftmaxObjective
from groundstate.learn.solvers.logistic.softmax import hessian, minus_target, pin, probabilities

F64 = NDArray[np.float64]
UNKNOWNS = 128  # up to which every strength has a Hessian of its own
ROWS_PER_UNKNOWN = 200  # of the part on which the path is followed
ROUNDS = 14  # of the population before a member goes on alone
STALL = 0.7  # a gradient that shrinks less than this in two rounds is left to itself
SECANTS = 3  # last steps that correct the next
NEAR = 0.1  # a gradient from which one step follows the path well enough
NEAR_SCORES = 0.5  # the same for a step that moves scores less
EXACT = 0.99  # share of tol that leaves room for rounding
SAME = 0.5  # share of tol by which strengths may differ and have one solution


class Population(Members):
    """All folds and strengths, and the mean of the folds."""

    def solve(self, strengths: F64, tol: float) -> tuple[F64, Any, Any] | None:
        """θ ``(F, S, R, D)``, steps ``(F, S)`` and which are solved; None where the path is lost."""
        every = max(1, self.rows.n // (ROWS_PER_UNKNOWN * int(np.prod(self.rows.shape))))
        path = self._path(strengths, tol, every)
        if path is None:
            return None
        center, inverse = path  # (L, R, D), (L, RD, RD)
        live, (folds, many) = len(center), (len(self.weights) - 1, len(strengths))
        if every > 1:  # the path was that of a part of the rows: a step with all of them
            mean, goal = np.full(live, folds), np.full(live, tol)
            self._rounds(center, mean, np.arange(live), strengths, inverse, goal, 1)
        fold, at = np.divmod(np.arange(folds * live), live)
        theta = np.tile(center, (folds, 1, 1))
        goal = np.full(folds * live, EXACT * tol)
        if live < many:
            goal[at == live - 1] -= SAME * tol
        steps, done, slope = self._rounds(theta, fold, at, strengths, inverse, goal, ROUNDS, center)
        return self._filled(theta, steps, done, slope[at == live - 1], strengths, live, tol)

    def _rounds(
        self, theta: F64, fold: Any, at: Any, strengths: F64, inverse: F64, goal: F64, rounds: int,
        center: F64 | None = None,
    ) -> tuple[Any, Any, F64]:  # fmt: skip
        """Move members in place; steps, who arrived, and the last gradients."""
        (m, r, d), u = theta.shape, theta[0].size
        ridge = strengths[at][:, None] * (np.arange(d) < self.rows.p)
        steps, done = np.zeros(m, np.int64), np.zeros(m, bool)
        slope = np.empty((m, r, d))
        on, now, aim = np.arange(m), theta, goal  # those that still move
        size, older = np.full((2, m), np.inf)
        pairs: list[tuple[F64, F64]] = []  # of those, their last steps and what these changed
        move = before = np.zeros((m, u))
        for turn in range(rounds):
            shared = center if turn == 0 and center is not None else now
            g = self.gradient(shared, fold, ridge)
            new = abs(g).reshape(len(on), u).max(1)
            slope[on] = g
            arrived = new <= aim
            done[on] = arrived
            keep = ~arrived & (new < (4.0 if turn < 2 else STALL) * older)
            older, size = size, new
            if not keep.all():
                if now is not theta:
                    theta[on] = now
                if not keep.any():
                    return steps, done, slope
                on, now, g, aim, older, size = (v[keep] for v in (on, now, g, aim, older, size))
                fold, at, ridge, before, move = (v[keep] for v in (fold, at, ridge, before, move))
                pairs = [(a[keep], b[keep]) for a, b in pairs]
            steps[on] += 1
            residue = _times(inverse, at, g.reshape(len(on), u))
            if turn:
                pairs = [*pairs[1 - SECANTS :], (move, residue - before)]
            move, before = _mixed(residue, pairs), residue
            now = now - move.reshape(len(on), r, d)
        theta[on] = now
        return steps, done, slope

    def _path(self, strengths: F64, tol: float, every: int) -> tuple[F64, F64] | None:
        """θ of the mean and its inverse Hessians along the strengths, as far as they differ."""
        rows = self.rows
        (r, d), p = rows.shape, rows.p
        x = rows.sample(every)[0] if rows.sparse else self.x[::every]
        y, w = rows.y[::every], self.weights[-1, ::every].astype(x.dtype)
        y = y.astype(x.dtype) if rows.binary else y
        total = float(w.sum(dtype=np.float64))
        strengths = strengths * (total / self.totals[-1])
        stride = 2 if len(strengths) >= 8 else 1
        theta, before, past = np.zeros((r, d)), None, 1.0
        found: list[F64] = []
        hessians: list[F64] = []
        anchors: list[int] = []
        live = len(strengths)
        for c in [*range(0, live - 1, stride), live - 1]:
            now, start = float(strengths[c]), theta
            if before is not None and 0 < now < past:
                ratio = np.log(past / now) / np.log(strengths[anchors[-2]] / past)
                start = theta + (theta - before) * min(ratio, 2.0)
            before, past = (theta if anchors else None), now
            solved = _newton(rows, x, y, w, start, now, total)
            if solved is None:
                return None
            theta = solved[0]
            found.append(theta)
            hessians.append(solved[1])
            anchors.append(c)
            reach = 0.8 * SAME * tol * total / max(float(abs(theta[:, :p]).max()), 1e-300)
            if now - strengths[-1] <= reach:
                live = int(np.argmax(strengths - strengths[-1] <= reach)) + 1
                break
        center, flat = np.empty((live, r, d)), np.empty((live, r * d, r * d))
        for c in range(live):
            k = bisect_left(anchors, c)
            if anchors[k] == c:
                center[c], flat[c] = found[k], hessians[k]
            else:
                center[c], flat[c] = _between(found, k), 0.5 * (hessians[k - 1] + hessians[k])
        diagonal = flat.reshape(live, -1)[:, :: r * d + 1].reshape(live, r, d)
        raised = np.zeros((live, r, d))
        raised[:, :, :p] = strengths[:live, None, None]
        flat.reshape(live, -1)[:, :: r * d + 1] = (diagonal + raised).reshape(live, -1)
        return None if not _inverted(flat) else (center, flat * total)

    def _filled(
        self, theta: F64, steps: Any, done: Any, final: F64, strengths: F64, live: int, tol: float
    ) -> tuple[F64, Any, Any]:
        """Weaker strengths than the last one solved have its solution, where it is theirs."""
        folds, many, p = len(final), len(strengths), self.rows.p
        out = np.empty((folds, many, *theta.shape[1:]))
        count, solved = np.zeros((folds, many), np.int64), np.zeros((folds, many), bool)
        out[:, :live] = theta.reshape(folds, live, *theta.shape[1:])
        count[:, :live], solved[:, :live] = steps.reshape(folds, live), done.reshape(folds, live)
        if live == many:
            return out, count, solved
        end = out[:, live - 1]
        out[:, live:] = end[:, None]
        slope = np.repeat(final[:, None], many - live, 1)
        less = (strengths[live - 1] - strengths[live:]) / self.totals[:-1, None]  # (F, S - L)
        slope[..., :p] -= less[:, :, None, None] * end[:, None, :, :p]
        near = abs(slope).reshape(folds, many - live, -1).max(2) <= tol
        solved[:, live:] = solved[:, live - 1, None] & near
        return out, count, solved


def _inverted(matrices: F64) -> bool:
    """Positive definite matrices ``(L, U, U)`` become their inverses; False where one is none."""
    for a in matrices:  # LAPACK reads columns: what is below for it is above here
        factor, failed = dpotrf(a.T, lower=1, overwrite_a=1)
        if failed:
            return False
        dpotri(factor, lower=1, overwrite_c=1)
    below = np.tri(matrices.shape[1], k=-1, dtype=np.bool_)
    np.copyto(matrices, matrices.transpose(0, 2, 1).copy(), where=below)
    return bool(np.isfinite(matrices).all())


def _times(inverse: F64, at: Any, g: F64) -> F64:
    """The inverse of every member's strength times its gradient ``(M, RD)``."""
    if len(g) * inverse[0].size <= 2**17:
        return np.asarray((inverse[at] @ g[:, :, None])[:, :, 0])
    out = np.empty_like(g)
    for c in range(len(inverse)):
        own = at == c
        out[own] = g[own] @ inverse[c]
    return out


def _mixed(residue: F64, pairs: list[tuple[F64, F64]]) -> F64:
    r"""The step that leaves least of the residue, were it linear along the last steps.

    .. math:: r - \sum_j\gamma_j(s_j + \Delta r_j), \qquad \gamma = \arg\min\|r - \sum_j\gamma_j\Delta r_j\|
    """
    if not pairs:
        return residue
    if len(pairs) == 1:
        step, change = pairs[0]
        square = np.einsum("ij,ij->i", change, change) + 1e-300
        one = (np.einsum("ij,ij->i", change, residue) / square).clip(-2.0, 2.0)
        return np.asarray(residue - one[:, None] * (step + change))
    steps, changes = (np.stack(part, 1) for part in zip(*pairs, strict=True))  # (M, K, U)
    gram = changes @ changes.transpose(0, 2, 1)
    k = gram.shape[1]
    diagonal = gram.reshape(len(gram), -1)[:, :: k + 1]
    diagonal += 1e-10 * diagonal.max(1, keepdims=True) + 1e-300
    share = np.linalg.solve(gram, changes @ residue[:, :, None]).clip(-2.0, 2.0)
    out: F64 = residue - (share * (steps + changes)).sum(1)
    return out


def _between(found: list[F64], k: int) -> F64:
    """The middle of two neighbours on the path, by a cubic or quadratic through those around."""
    a, b = found[k - 1], found[k]
    left = found[k - 2] if k > 1 else None
    right = found[k + 1] if k + 1 < len(found) else None
    if left is not None and right is not None:
        return (9.0 * (a + b) - left - right) / 16.0
    if left is not None:
        return (3.0 * b + 6.0 * a - left) / 8.0
    return (3.0 * a + 6.0 * b - right) / 8.0 if right is not None else 0.5 * (a + b)


def _newton(
    rows: SoftmaxObjective, x: Any, y: Any, w: Any, theta: F64, strength: float, total: float
) -> tuple[F64, F64] | None:
    """θ near the optimum, and the Hessian there without its penalty."""
    (r, d), p, last = theta.shape, rows.p, np.inf
    size = max(256, CELLS // (d * r))
    ridge = np.zeros((r, d))
    ridge[:, :p] = strength
    for _ in range(12):
        now = theta.astype(x.dtype)
        first = _derivatives(x[:size], y[:size], w[:size], now)
        gradient, curved = (part.astype(np.float64) for part in first)
        for lo in range(size, len(x), size):
            piece = slice(lo, lo + size)
            parts = _derivatives(x[piece], y[piece], w[piece], now)
            gradient += parts[0]
            curved += parts[1]
        if not rows.binary:
            pin(curved, [d - 1] if rows.intercept else [], r)
        gradient += ridge * theta
        slope = float(abs(gradient).max()) / total
        if not slope <= 4.0 * last:
            return None
        full = curved.copy()
        full.reshape(-1)[:: r * d + 1] += ridge.reshape(-1)
        _, move, failed = dposv(full.T, gradient.reshape(-1), lower=1, overwrite_a=1)
        if failed:
            return None
        move = move.reshape(r, d)
        theta = theta - move
        # what is left is the square of the gradient, or of what the step did to the scores
        if slope <= NEAR or abs(move.astype(x.dtype) @ x[:256].T).max() <= NEAR_SCORES:
            return theta, curved
        last = slope
    return None


def _derivatives(x: Any, y: Any, w: Any, theta: Any) -> tuple[Any, Any]:
    """Gradient ``(R, D)`` and Hessian ``(RD, RD)`` of the loss of some rows."""
    p = probabilities(theta @ x.T)
    curved = hessian(x, p, w)
    return (minus_target(p, y) * w) @ x, curved
