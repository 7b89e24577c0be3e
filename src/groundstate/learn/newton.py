r"""Newton's method for the linear soft-min: logistic and softmax regression."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.reference import LinearEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.penalties import L2, plain_l2
from groundstate.learn.rules.softmin import SoftMin

MAX_UNKNOWNS = 600  # the Hessian is dense: beyond this L-BFGS is the better trade
MAX_CELLS = 2**22  # of one block of P⊗X rows


@solver_for(LinearEnergy, SoftMin)
@dataclass(frozen=True)
class Newton:
    r"""Newton steps with backtracking on :math:`J(W) = \frac1{\sum w}\bigl(\sum_i w_i
    [\,F(x_i) + W_{y_i}\tilde x_i] + \tfrac\lambda2\|W\|^2\bigr)`.

    With :math:`p_i = \mathrm{softmax}(W\tilde x_i)` the gradient is
    :math:`\sum_i w_i (p_i - 1_{y_i})\tilde x_i^\top + \lambda W` and the Hessian
    :math:`\sum_i w_i (\mathrm{diag}\,p_i - p_i p_i^\top)\otimes\tilde x_i\tilde x_i^\top + \lambda`.
    Two classes use the antisymmetry :math:`W_0 = -W_1` and have half the unknowns. Adding the same
    vector to all rows of W changes no probability; that null direction is pinned to zero mean.

    Parameters
    ----------
    max_iter : steps at most
    tol : largest entry of the gradient of J at the end
    """

    max_iter: int = 100
    tol: float = 1e-4

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, LinearEnergy) or not isinstance(rule, SoftMin):
            return "it is for a linear class energy with the soft-min rule"
        if rule.T != 1.0 or rule.contrasted(energy) != ("y",):
            return "it needs SoftMin at T=1 over y"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None and not plain_l2(problem.penalty):
            return "its only penalty is L2 on the weights"
        if bool((problem.resident["y"] < 0).any()):
            return "some targets are unknown"
        return None

    @staticmethod
    def handles(classes: int, features: int) -> bool:
        """Whether the dense Hessian is small enough to be the better choice."""
        return (classes if classes > 2 else 1) * (features + 1) <= MAX_UNKNOWNS

    def fits(self, problem: Problem) -> bool:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        return self.handles(*energy.W.shape)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        history = History(solver="Newton")
        run = Run(problem, history, self.max_iter)
        system = _Softmax(problem)
        with Monitor(problem.callbacks, run) as monitor:
            value, gradient, hessian = system.derivatives()
            while run.epoch < self.max_iter:
                start = time.perf_counter()
                small = float(gradient.abs().max()) <= self.tol
                moved, value = system.step(value, gradient, hessian)
                system.store()
                history.objective.append(value)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(value):
                    return history
                # the step taken from a gradient below tol squares its error: stop after it
                if small or not moved:
                    history.converged = True
                    break
                value, gradient, hessian = system.derivatives()
        history.stop = "gradient" if history.converged else "max_iter"
        if not history.converged:
            warnings.warn(
                f"Newton stopped after {self.max_iter} steps before the gradient reached "
                f"tol={self.tol}; the classes may be separable: strengthen the penalty",
                NotConverged,
                stacklevel=3,
            )
        return history


class _Softmax:
    """The sums over rows that Newton needs, in float64."""

    def __init__(self, problem: Problem) -> None:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        self.energy = energy
        x = problem.resident["x"].double()
        self.intercept = energy.b is not None
        ones = x.new_ones(len(x), 1)
        self.x = torch.cat([x, ones], 1) if self.intercept else x  # (N, D)
        w = problem.sample_weight
        self.w = None if w is None else w.double()
        self.total = problem.total_weight
        self.classes = energy.W.shape[0]
        self.binary = self.classes == 2
        y = problem.resident["y"]
        rows = 1 if self.binary else self.classes
        self.target = (
            y.double()[:, None]
            if self.binary
            else torch.zeros(len(y), rows, dtype=torch.float64, device=y.device).scatter_(
                1, y[:, None], 1.0
            )
        )  # (N, R)
        strength = problem.penalty.strength if isinstance(problem.penalty, L2) else 0.0
        d = self.x.shape[1]
        ridge = self.x.new_full((d,), float(strength) / (2.0 if self.binary else 1.0))
        if self.intercept:
            ridge[-1] = 0.0
        self.ridge = ridge  # (D,)
        theta = energy.W.detach().double()
        if self.intercept:
            theta = torch.cat([theta, energy.b.detach().double()[:, None]], 1)
        self.theta = theta[1:] - theta[:1] if self.binary else theta - theta.mean(0)  # (R, D)

    def store(self) -> None:
        theta = torch.cat([-self.theta / 2, self.theta / 2]) if self.binary else self.theta
        weights = theta[:, :-1] if self.intercept else theta
        self.energy.W.copy_(weights)
        if self.intercept:
            self.energy.b.copy_(theta[:, -1])

    def _value(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Sum of losses over local rows, and the scores."""
        score = self.x @ theta.T  # (N, R)
        if self.binary:
            loss = torch.nn.functional.softplus(score, threshold=40.0) - self.target * score
            loss = loss[:, 0]
        else:
            loss = torch.logsumexp(score, 1) - (self.target * score).sum(1)
        return loss.sum() if self.w is None else loss @ self.w, score

    def value(self, theta: Tensor) -> float:
        total = current().sum(self._value(theta)[0]) + 0.5 * (self.ridge * theta**2).sum()
        return float(total) / self.total

    def derivatives(self) -> tuple[float, Tensor, Tensor]:
        """J, its gradient ``(R, D)`` and Hessian ``(RD, RD)`` at θ, over all shards."""
        value, score = self._value(self.theta)
        p = torch.sigmoid(score) if self.binary else torch.softmax(score, 1)
        residual = p - self.target
        if self.w is not None:
            residual = residual * self.w[:, None]
        gradient = residual.T @ self.x
        hessian = self._hessian(p)
        sums = current().sum_dict({"v": value.reshape(1), "g": gradient, "h": hessian})
        value_, gradient, hessian = sums["v"], sums["g"], sums["h"]
        penalty = 0.5 * (self.ridge * self.theta**2).sum()
        gradient = (gradient + self.ridge * self.theta) / self.total
        hessian.diagonal().add_(self.ridge.repeat(len(self.theta)))
        if not self.binary:
            self._pin(hessian)
        return float(value_ + penalty) / self.total, gradient, hessian / self.total

    def _hessian(self, p: Tensor) -> Tensor:
        r, d = self.theta.shape
        w = self.w
        if self.binary:
            c = (p * (1 - p))[:, 0]
            return self.x.T @ (self.x * (c if w is None else c * w)[:, None])
        out = self.x.new_zeros(r * d, r * d)
        wp = p if w is None else p * w[:, None]
        for k in range(r):
            block = slice(k * d, (k + 1) * d)
            out[block, block] = self.x.T @ (self.x * wp[:, k : k + 1])
        rows = max(1, MAX_CELLS // (r * d))
        for at in range(0, len(self.x), rows):
            piece = slice(at, at + rows)
            m = (p[piece, :, None] * self.x[piece, None, :]).flatten(1)  # (n, RD)
            weighted = m if w is None else m * w[piece, None]
            out.addmm_(weighted.T, m, alpha=-1.0)
        return out

    def _pin(self, hessian: Tensor) -> None:
        """Give the null directions (all classes shifted alike, where unpenalised) curvature."""
        r, d = self.theta.shape
        free = (self.ridge == 0).nonzero()[:, 0]
        scale = hessian.diagonal().mean().clamp_min(1e-12)
        view = hessian.view(r, d, r, d)
        view[:, free, :, free] += scale / r

    def step(self, value: float, gradient: Tensor, hessian: Tensor) -> tuple[bool, float]:
        """One damped Newton step; False when no descent is left."""
        flat = gradient.reshape(-1)
        factor, failed = torch.linalg.cholesky_ex(hessian)
        if int(failed):
            floor = 1e-10 * float(hessian.diagonal().abs().max()) + 1e-300
            values, vectors = torch.linalg.eigh(hessian)
            direction = -(vectors @ ((vectors.T @ flat) / values.clamp_min(floor)))
        else:
            direction = -torch.cholesky_solve(flat[:, None], factor)[:, 0]
        slope = float(direction @ flat)
        if slope >= 0.0:
            return False, value
        move = direction.view_as(self.theta)
        step = 1.0
        for _ in range(30):
            candidate = self.theta + step * move
            new = self.value(candidate)
            if new <= value + 1e-4 * step * slope:
                self.theta = candidate
                return True, new
            step *= 0.5
        return False, value
