r"""The sums over rows of a linear soft-min: loss, gradient, Hessian and Hessian times a direction.

With :math:`p_i = \mathrm{softmax}(W\tilde x_i)`, one pass gives

.. math::
    \sum_i w_i[\log\textstyle\sum_k e^{s_{ik}} - s_{iy_i}],\qquad
    \sum_i w_i(p_i - 1_{y_i})\tilde x_i^\top .

Two classes are one score :math:`s = (W_1 - W_0)\tilde x` and :math:`p = \sigma(s)`. Rows are dense, on any
device, or CSR; scores are laid out class by class, so that every operation runs along the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.tiles import over_slices
from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import Problem
from groundstate.learn.penalties.norms import L2, plain_l2
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.linear.least_squares_sums import is_sparse, scipy_rows

FAR = 10.0  # means this many spreads from 0 make the intercept and the weights hard to tell apart
CELLS = 2**18  # numbers of a slice of rows: it stays in the cache between its two products


def reason_against_softmax(problem: Problem) -> str | None:
    """Why a problem is no soft-min of a linear energy over its classes, or None."""
    energy, rule = problem.energy, problem.rule
    if not isinstance(energy, LinearEnergy) or not isinstance(rule, SoftMin):
        return "it is for a linear class energy with the soft-min rule"
    if rule.T != 1.0 or rule.contrasted(energy) != ("y",):
        return "it needs SoftMin at T=1 over y"
    if not problem.is_resident or set(problem.names) != {"x", "y"}:
        return "it needs resident x and y"
    return None


def far_means(x: Any, w: Any) -> Any:
    """Means ``(p,)`` of columns that lie far from 0, zeros for the others; None where none does.

    From some of the rows: any point among them serves as the origin, where the intercept belongs.
    """
    every, reduce = max(1, len(x) // 512), current()
    some, own = x[::every], None if w is None else w[::every]
    if (
        isinstance(some, Tensor) and some.device.type == "cpu"
    ):  # NumPy is quicker where rows are few
        some, own = some.numpy(), None if own is None else np.asarray(own)
    if own is not None:
        some = some[own > 0]
    some = some.double() if isinstance(some, Tensor) else some.astype(np.float64, copy=False)
    total, square, count = some.sum(0), (some * some).sum(0), float(len(some))
    if reduce.world > 1:
        both = torch.stack([torch.as_tensor(total), torch.as_tensor(square)])
        both = reduce.sum(torch.cat([both, both.new_full((2, 1), count)], 1))
        total, square, count = both[0, :-1], both[1, :-1], float(both[0, -1])
    mean = total / max(count, 1.0)
    spread = square / max(count, 1.0) - mean * mean
    far = mean * mean > FAR**2 * (spread + abs(spread)) / 2
    if not bool(far.any()):
        return None
    return torch.as_tensor(mean) * torch.as_tensor(far)


class SoftmaxRows:
    """Weighted sums over the rows of one problem, on all shards, float64.

    θ is ``(R, D)``: R = 1 for two classes, D has the intercept last. Columns far from 0 are seen from
    their means, so that θ's intercept is the score there. Arrays are NumPy's on the CPU and torch's
    elsewhere.
    """

    def __init__(self, problem: Problem) -> None:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        self.energy = energy
        x, y, w = problem.resident["x"], problem.resident["y"], problem.sample_weight
        self.on_host = x.device.type == "cpu"
        self.xp: Any = np if self.on_host else torch
        self.sparse = is_sparse(x)
        if self.sparse and self.on_host:
            self.x: Any = scipy_rows(x).astype(np.float64)
            self.xt = self.x.T.tocsr()
        else:
            self.x = self._array((x.to_dense() if self.sparse else x).double())
            self.sparse = False
        self.y = self._array(y)
        self.w = None if w is None else self._array(w.double())
        self.n, self.p = self.x.shape
        self._sample: Any = None  # the last one asked for
        self.total = problem.total_weight
        self.intercept = energy.b is not None
        self.classes = int(energy.W.shape[0])
        self.binary = self.classes == 2
        self.shape = (1 if self.binary else self.classes, self.p + self.intercept)
        strength = problem.penalty.strength if isinstance(problem.penalty, L2) else 0.0
        # W₀ = −W₁: λ(‖W₀‖² + ‖W₁‖²)/2 = (λ/2)‖W₁ − W₀‖²/2
        self.strength = float(strength) * (0.5 if self.binary else 1.0)
        self.ridge = self._array(torch.full((self.shape[1],), self.strength, dtype=torch.float64))
        if not self.on_host:
            self.ridge = self.ridge.to(x.device)
        if self.intercept:
            self.ridge[-1] = 0.0
        shift = far_means(self.x, self.w) if self.intercept and not self.sparse else None
        self.shift = None if shift is None else self._array(shift)  # (p,)

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether the fused sums are those of the problem's objective."""
        plain = problem.penalty is None or plain_l2(problem.penalty)
        return plain and reason_against_softmax(problem) is None

    def _array(self, values: Tensor) -> Any:
        return values.detach().numpy() if self.on_host else values.detach()

    # --- θ and the energy ----------------------------------------------------------------

    def start(self) -> Any:
        """θ of the energy as it is."""
        theta = self.energy.W.detach().double()
        if self.energy.b is not None:
            b = self.energy.b.detach().double()
            b = b if self.shift is None else b + theta @ torch.as_tensor(self.shift)
            theta = torch.cat([theta, b[:, None]], 1)
        return self._array(theta[1:] - theta[:1] if self.binary else theta - theta.mean(0))

    @torch.no_grad()
    def store(self, theta: Any) -> None:
        """Put θ into the energy."""
        values = torch.as_tensor(theta)
        if self.binary:
            values = torch.cat([-values / 2, values / 2])
        self.energy.W.copy_(values[:, : self.p])
        if self.energy.b is not None:
            moved = 0.0 if self.shift is None else values[:, :-1] @ torch.as_tensor(self.shift)
            self.energy.b.copy_(values[:, -1] - moved)

    # --- sums ----------------------------------------------------------------------------

    def scores(self, theta: Any, x: Any) -> Any:
        """Class by class, ``(R, n)``."""
        W = theta[:, : self.p]
        s = (x @ W.T).T if self.sparse else W @ x.T
        if self.intercept:
            b = theta[:, self.p :]
            s = s + (b if self.shift is None else b - (W @ self.shift)[:, None])
        return s

    def _from_shift(self, sums: Any) -> Any:
        """Sums over rows times ``[x, 1]``, ``(R, D)``, as if the columns began at their means."""
        if self.shift is not None:
            sums[:, : self.p] -= sums[:, self.p, None] * self.shift
        return sums

    def residual(self, s: Any, y: Any) -> tuple[Any, Any]:
        """Loss of each row ``(n,)`` and p − 1_y ``(R, n)`` from scores, which are overwritten."""
        xp = self.xp
        if self.binary:
            s = s[0]
            t = y if self.on_host else y.double()
            e = xp.exp(-abs(s))
            loss = xp.log1p(e) + xp.maximum(s, s * 0.0) - t * s
            up = xp.where(s >= 0, e * 0.0 + 1.0, e)
            return loss, (up / (1.0 + e) - t)[None]
        s = s - xp.amax(s, 0)
        own = xp.arange(len(y)) if self.on_host else torch.arange(len(y), device=y.device)
        at = s[y, own]
        p = xp.exp(s)
        size = p.sum(0)
        loss = xp.log(size) - at
        p = p / size
        p[y, own] -= 1.0
        return loss, p

    def evaluate(self, theta: Any) -> tuple[float, Any]:
        """The mean objective and its gradient ``(R, D)``."""
        r, d = self.shape

        def part(lo: int, hi: int) -> Any:
            x, y = self.x[lo:hi], self.y[lo:hi]
            loss, residual = self.residual(self.scores(theta, x), y)
            if self.w is not None:
                w = self.w[lo:hi]
                loss, residual = loss * w, residual * w
            out = self.xp.empty((r, d + 1)) if self.on_host else theta.new_empty((r, d + 1))
            out[:, : self.p] = (self.xt @ residual.T).T if self.sparse else residual @ x
            if self.intercept:
                out[:, self.p] = residual.sum(1)
            out[:, -1] = loss.sum()
            return self._from_shift(out)

        if self.sparse or not self.on_host or self.n * d <= CELLS:
            total = part(0, self.n)
        else:
            size = max(256, CELLS // d)
            total = sum(over_slices(part, self.n, size), np.zeros((r, d + 1)))
        total = self._over_shards(total)
        value = float(total[0, -1]) + 0.5 * float((theta * theta * self.ridge).sum())
        return value / self.total, (total[:, :-1] + theta * self.ridge) / self.total

    def _over_shards(self, values: Any) -> Any:
        reduce = current()
        return values if reduce.world == 1 else self._array(reduce.sum(torch.as_tensor(values)))

    def sample(self, every: int) -> tuple[Any, Any, float]:
        """Every so many rows, dense with a column of ones, their weights and the factor to all."""
        if self._sample is not None and self._sample[0] == every:
            kept_sample: tuple[Any, Any, float] = self._sample[1]
            return kept_sample
        x = self.x[::every]
        x = x.toarray() if self.sparse else x
        x = x if self.shift is None else x - self.shift
        if self.intercept:
            ones = self.xp.ones((len(x), 1)) if self.on_host else x.new_ones((len(x), 1))
            x = self.xp.concatenate([x, ones], 1)
        w = None if self.w is None else self.w[::every]
        kept = float(len(x)) if w is None else float(w.sum())
        whole = float(self.n) if self.w is None else float(self.w.sum())
        self._sample = every, (x, w, whole / max(kept, 1e-300))
        return x, w, whole / max(kept, 1e-300)

    def hessian(self, theta: Any, every: int = 1) -> Any:
        """The Hessian of the mean objective ``(RD, RD)``, from every so many rows."""
        r, d = self.shape
        x, w, factor = self.sample(every)

        def part(lo: int, hi: int) -> Any:
            rows = x[lo:hi]
            s = theta @ rows.T
            if self.binary:
                e = self.xp.exp(-abs(s))
                p = 1.0 / (1.0 + e)
                curvature = (p * e / (1.0 + e))[0]
                curvature = curvature if w is None else curvature * w[lo:hi]
                root = rows * curvature[:, None] ** 0.5
                return root.T @ root
            p = self.xp.exp(s - self.xp.amax(s, 0))
            p = p / p.sum(0)
            each = None if w is None else w[lo:hi] ** 0.5
            joint = (p.T[:, :, None] * rows[:, None, :]).reshape(-1, r * d)
            joint = joint if each is None else joint * each[:, None]
            out = -(joint.T @ joint)
            for k in range(r):
                root = p[k] ** 0.5 if each is None else p[k] ** 0.5 * each
                scaled = rows * root[:, None]
                out[k * d : (k + 1) * d, k * d : (k + 1) * d] += scaled.T @ scaled
            return out

        size = max(256, CELLS // (2 * r * d)) if self.on_host else max(256, 2**26 // (r * d))
        if len(x) <= size:
            total = part(0, len(x))
        elif self.on_host:
            total = sum(over_slices(part, len(x), size), np.zeros((r * d, r * d)))
        else:
            total = sum(part(lo, min(lo + size, len(x))) for lo in range(0, len(x), size))
        total = self._over_shards(total * factor)
        total.reshape(-1)[:: r * d + 1] += (
            self.ridge.repeat(r) if not self.on_host else np.tile(self.ridge, r)
        )
        if not self.binary:
            self._pin(total)
        return total / self.total

    def metric(self) -> Any:
        """A class's block ``(D, D)`` of the Hessian where all classes are equally likely."""
        x = self.x.toarray() if self.sparse else self.x
        rows = x if self.w is None else x * self.w[:, None]
        out = self.xp.zeros((self.shape[1],) * 2) if self.on_host else x.new_zeros(
            (self.shape[1],) * 2
        )  # fmt: skip
        out[: self.p, : self.p] = rows.T @ x
        if self.intercept:
            out[-1, : self.p] = out[: self.p, -1] = rows.sum(0)
            out[-1, -1] = len(x) if self.w is None else self.w.sum()
            if self.shift is not None:
                m, cross, many = self.shift, out[-1, : self.p] + 0.0, float(out[-1, -1])
                both = cross[:, None] * m
                out[: self.p, : self.p] += many * m[:, None] * m - both - both.T
                out[-1, : self.p] = out[: self.p, -1] = cross - many * m
        out = self._over_shards(out) / self.classes
        out.reshape(-1)[:: len(out) + 1] += self.ridge
        return out / self.total

    def _pin(self, hessian: Any) -> None:
        """Give the null directions (all classes shifted alike, where unpenalised) curvature."""
        r, d = self.shape
        scale = max(float(hessian.reshape(-1)[:: r * d + 1].mean()), 1e-12) / r
        blocks = hessian.reshape(r, d, r, d)
        for j in range(d):
            if float(self.ridge[j]) == 0:
                blocks[:, j, :, j] += scale

    def curvature(self, theta: Any) -> Any:
        """What ``product`` needs of θ: probabilities, weighted, ``(R, n)``."""
        s = self.scores(theta, self.x)
        if self.binary:
            e = self.xp.exp(-abs(s))
            h = e / (1.0 + e) ** 2
            return h if self.w is None else h * self.w
        p = self.xp.exp(s - self.xp.amax(s, 0))
        return p / p.sum(0)

    def product(self, kept: Any, move: Any) -> Any:
        """The Hessian of the mean objective times a direction ``(R, D)``, never formed."""
        v = self.scores(move, self.x)
        if self.binary:
            v = v * kept
        else:
            v = kept * v
            v = v - kept * v.sum(0)
            v = v if self.w is None else v * self.w
        out = self.xp.empty(self.shape) if self.on_host else move.new_empty(self.shape)
        out[:, : self.p] = (self.xt @ v.T).T if self.sparse else v @ self.x
        if self.intercept:
            out[:, self.p] = v.sum(1)
        out = self._from_shift(out)
        return (self._over_shards(out) + move * self.ridge) / self.total

    def separates(self, theta: Any) -> bool:
        """Whether every row of positive weight has its own class strictly ahead of the others."""
        s = self.scores(theta, self.x)
        if self.binary:
            margin = self.xp.where(self.y == 1, s[0], -s[0])
        else:
            own = self.xp.arange(self.n) if self.on_host else torch.arange(self.n, device=s.device)
            ahead = s[self.y, own] + 0.0
            s[self.y, own] = -np.inf
            margin = ahead - self.xp.amax(s, 0)
        if self.w is not None:
            margin = margin[self.w > 0]
        behind = torch.tensor(float((margin <= 0).sum()), dtype=torch.float64)
        return float(current().sum(behind)) == 0.0


__all__ = ["SoftmaxRows", "far_means", "reason_against_softmax"]
