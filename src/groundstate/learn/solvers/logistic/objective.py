r"""Softmax regression on the rows of one problem: what all its solvers lower."""

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
from groundstate.learn.solvers.logistic.softmax import (
    both,
    hessian,
    pin,
    places,
    probabilities,
    xp_of,
)

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
    if isinstance(some, Tensor) and some.device.type == "cpu":  # NumPy is quicker on few rows
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


class SoftmaxObjective:
    """The mean objective of one problem over weighted rows, dense or CSR, on all shards, float64.

    θ is ``(R, D)``: R = 1 for two classes, D has the intercept last. Columns far from 0 are seen from
    their means, so that θ's intercept is the score there.

    Parameters
    ----------
    problem : of a kind that `takes` accepts, with L2 or another penalty, which is then left out
    on_host : whether arrays are NumPy's; None decides by the device of the rows
    """

    def __init__(self, problem: Problem, on_host: bool | None = None) -> None:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        self.energy = energy
        x, y, w = problem.resident["x"], problem.resident["y"], problem.sample_weight
        self.on_host = x.device.type == "cpu" if on_host is None else on_host
        self.sparse = is_sparse(x) and self.on_host
        self.intercept = energy.b is not None
        self.shift: Tensor | None = None  # (p,)
        if self.sparse:
            self.x: Any = scipy_rows(x).astype(np.float64)
            self.xt = self.x.T.tocsr()
        else:
            x = (x.to_dense() if is_sparse(x) else x).double()
            self.shift = far_means(x, w) if self.intercept else None
            self.x = self._array(x if self.shift is None else x - self.shift)
        self.w = None if w is None else self._array(w.double())
        self.n, self.p = self.x.shape
        self.total = problem.total_weight
        self.classes = int(energy.W.shape[0])
        self.binary = self.classes == 2
        self.y = self._array(y.double() if self.binary else y)
        self.shape = (1 if self.binary else self.classes, self.p + self.intercept)
        strength = problem.penalty.strength if isinstance(problem.penalty, L2) else 0.0
        # W₀ = −W₁: λ(‖W₀‖² + ‖W₁‖²)/2 = (λ/2)‖W₁ − W₀‖²/2
        self.strength = float(strength) * (0.5 if self.binary else 1.0)
        self.ridge = self._full(self.shape[1], self.strength)
        if self.intercept:
            self.ridge[-1] = 0.0
        self._sample: Any = None  # the last one asked for
        self._seen: Any = None, None  # θ evaluated last and p − 1_y there, where rows are few
        if not self.sparse and self.n * self.shape[1] <= CELLS:
            self.x = self.sample(1)[0]  # with a column of ones: half the calls

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether these are the sums of the problem's objective."""
        plain = problem.penalty is None or plain_l2(problem.penalty)
        return plain and reason_against_softmax(problem) is None

    def _array(self, values: Tensor) -> Any:
        return values.detach().numpy() if self.on_host else values.detach()

    def _full(self, shape: Any, value: float = 0.0) -> Any:
        if self.on_host:
            return np.full(shape, value)
        size = (shape,) if isinstance(shape, int) else shape
        return torch.full(size, value, dtype=torch.float64, device=self.x.device)

    # --- θ and the energy ----------------------------------------------------------------

    def start(self) -> Any:
        """θ of the energy as it is."""
        theta = self.energy.W.detach().double()
        if self.energy.b is not None:
            b = self.energy.b.detach().double()
            b = b if self.shift is None else b + theta @ self.shift
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
            moved = 0.0 if self.shift is None else values[:, :-1] @ self.shift
            self.energy.b.copy_(values[:, -1] - moved)

    # --- products with the rows ------------------------------------------------------------

    def scores(self, theta: Any, x: Any) -> Any:
        """Class by class, ``(R, n)``; rows with or without a column of ones."""
        if x.shape[1] == theta.shape[1]:
            return theta @ x.T
        W = theta[:, : self.p]
        s = (x @ W.T).T if self.sparse else W @ x.T
        return s + theta[:, self.p :] if self.intercept else s

    def back(self, values: Any, x: Any) -> Any:
        """Σ values x̃ᵀ of values ``(R, n)``, ``(R, D)``."""
        if x.shape[1] == self.shape[1] and not self.sparse:
            return values @ x
        out = self._full((len(values), self.shape[1]))
        out[:, : self.p] = (self.xt @ values.T).T if self.sparse else values @ x
        if self.intercept:
            out[:, self.p] = values.sum(1)
        return out

    def _over_shards(self, values: Any) -> Any:
        reduce = current()
        return values if reduce.world == 1 else self._array(reduce.sum(torch.as_tensor(values)))

    # --- value and derivatives -------------------------------------------------------------

    def evaluate(self, theta: Any) -> tuple[float, Any]:
        """The mean objective and its gradient ``(R, D)``."""
        d = self.shape[1]

        def part(lo: int, hi: int) -> Any:
            x, y = self.x[lo:hi], self.y[lo:hi]
            loss, slope = both(self.scores(theta, x), y)
            self._seen = theta, slope
            if self.w is not None:
                w = self.w[lo:hi]
                loss, slope = loss * w, slope * w
            return loss.sum(), self.back(slope, x)

        if self.sparse or not self.on_host or self.n * d <= CELLS:
            value, slope = part(0, self.n)
        else:
            value, slope = 0.0, np.zeros(self.shape)
            for own, more in over_slices(part, self.n, max(256, CELLS // d)):
                value, slope = value + own, slope + more
            self._seen = None, None
        if current().world > 1:
            every = torch.cat([torch.as_tensor(slope).reshape(-1), torch.as_tensor(value)[None]])
            every = current().sum(every)
            value, slope = every[-1], self._array(every[:-1].reshape(self.shape))
        value = float(value) + 0.5 * float((theta * theta * self.ridge).sum())
        return value / self.total, (slope + theta * self.ridge) / self.total

    def sample(self, every: int) -> tuple[Any, Any, float]:
        """Every so many rows, dense with a column of ones, their weights and the factor to all."""
        if self._sample is not None and self._sample[0] == every:
            kept_sample: tuple[Any, Any, float] = self._sample[1]
            return kept_sample
        x = self.x[::every]
        x = x.toarray() if self.sparse else x
        if self.shape[1] > x.shape[1]:
            ones = self._full((len(x), 1), 1.0)
            x = xp_of(x).concatenate([x, ones], 1)
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
            if every == 1 and self._seen[0] is theta and hi - lo == self.n:
                p = self._seen[1] + 0.0  # the gradient was just asked for
                if self.binary:
                    p += self.y
                else:
                    p[self.y, places(self.y)] += 1.0
            else:
                p = probabilities(theta @ x[lo:hi].T)
            return hessian(x[lo:hi], p, None if w is None else w[lo:hi])

        size = max(256, CELLS // (2 * r * d)) if self.on_host else max(256, 2**26 // (r * d))
        if len(x) <= size:
            total = part(0, len(x))
        elif self.on_host:
            total = sum(over_slices(part, len(x), size), np.zeros((r * d, r * d)))
        else:
            total = sum(part(lo, min(lo + size, len(x))) for lo in range(0, len(x), size))
        total = self._over_shards(total * factor if every > 1 else total)
        total.reshape(-1)[:: r * d + 1] += xp_of(total).tile(self.ridge, (r,))
        if not self.binary:
            pin(total, [j for j, own in enumerate(self.ridge.tolist()) if own == 0], r)
        return total / self.total

    def metric(self) -> Any:
        """A class's block ``(D, D)`` of the Hessian where all classes are equally likely."""
        x = self.x.toarray() if self.sparse else self.x
        rows = x if self.w is None else x * self.w[:, None]
        if x.shape[1] == self.shape[1]:
            out = rows.T @ x
        else:
            out = self._full((self.shape[1],) * 2)
            out[: self.p, : self.p] = rows.T @ x
            out[-1, : self.p] = out[: self.p, -1] = rows.sum(0)
            out[-1, -1] = len(x) if self.w is None else self.w.sum()
        out = self._over_shards(out) / self.classes
        out.reshape(-1)[:: len(out) + 1] += self.ridge
        return out / self.total

    def curvature(self, theta: Any) -> Any:
        """What ``product`` needs of θ: of two classes w p(1 − p), of more p, ``(R, n)``."""
        p = probabilities(self.scores(theta, self.x))
        if not self.binary:
            return p
        return p * (1.0 - p) if self.w is None else p * (1.0 - p) * self.w

    def product(self, kept: Any, move: Any) -> Any:
        """The Hessian of the mean objective times a direction ``(R, D)``, never formed."""
        v = kept * self.scores(move, self.x)
        if not self.binary:
            v = v - kept * v.sum(0)
            v = v if self.w is None else v * self.w
        return (self._over_shards(self.back(v, self.x)) + move * self.ridge) / self.total

    def separates(self, theta: Any) -> bool:
        """Whether every row of positive weight has its own class strictly ahead of the others."""
        s = self.scores(theta, self.x)
        xp = xp_of(s)
        if self.binary:
            margin = xp.where(self.y == 1, s[0], -s[0])
        else:
            own = self.y, places(self.y)
            ahead = s[own] + 0.0
            s[own] = -np.inf
            margin = ahead - xp.amax(s, 0)
        if self.w is not None:
            margin = margin[self.w > 0]
        behind = torch.tensor(float((margin <= 0).sum()), dtype=torch.float64)
        return float(current().sum(behind)) == 0.0
