r"""Inducing points by small batches: variational learning of a Gaussian process."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy
from groundstate.energy.kernels.gaussian_process.inducing import (
    InducingProcessEnergy,
    inducing_factor,
)
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor
from groundstate.learn.solvers.gp.inducing import Inducing, chosen_points
from groundstate.math.kernels import Geometry
from groundstate.registry import solvers


@solvers.register(
    formula=r"\min_{\theta, q}\ \sum_i \mathbb{E}_q[-\log N(y_i; f_i, s_i)] + \mathrm{KL}(q\,\|\,p)",
    make=lambda energy: VariationalInducing(batch_size=16, epochs=4),
)
@dataclass(frozen=True)
class VariationalInducing(Inducing):
    r"""Minimise :math:`\sum_i \mathbb{E}_q[-\log N(y_i; f_i, s_i)] + \mathrm{KL}(q\,\|\,p)` over
    :math:`q(v) = N(\mu, S)` and the parameters of the kernel, a batch of rows at a time.

    q moves along its natural gradient, which for its natural parameters is a running mean of the
    batches' own best q; θ moves by Adam. After the last epoch one pass over the rows gives the best
    q at the θ that was found.

    Parameters
    ----------
    noise, n_inducing, evidence, rounds : as in `Inducing`
    batch_size : weight of a batch
    epochs : passes over the rows
    learning_rate : of Adam, falling to zero
    rate : of the running mean, at least
    """

    batch_size: int = 256
    epochs: int = 20
    learning_rate: float = 0.05
    rate: float = 0.1

    def reason_against(self, problem: Problem) -> str | None:
        if isinstance(problem.energy, InducingProcessEnergy) and self.batch_size < 1:
            return f"batch_size must be at least 1, got {self.batch_size}"
        return super().reason_against(problem)

    def _epochs(self) -> int:
        return self.epochs

    def _learn(
        self, field: FieldEnergy, y: Tensor, problem: Problem, history: History, monitor: Monitor
    ) -> None:
        if not self._start(field, y, problem.key):
            return
        u = chosen_points(field, self.n_inducing)
        line = WeightLine.of(field.x, y.T.contiguous(), weights=field.weight)
        low, high = torch.as_tensor(field.kernel.bounds).to(field.x).T
        adam = torch.optim.Adam([field.theta], lr=self.learning_rate, betas=(0.9, 0.99))
        per_epoch = math.ceil(line.total / self.batch_size)
        q: _Natural | None = None
        step = 0
        for epoch in range(self.epochs):
            losses = []
            for rows, weight in line.batches(
                problem.key.fold("epoch", epoch), self.batch_size, field.x.device
            ):
                w = torch.ones(len(rows)).to(field.x) if weight is None else weight.to(field.x)
                batch = _Batch(field, y.T[rows], rows, w, line.total)
                own = batch.best(u)
                q = own if q is None else q.moved(own, max(self.rate, 1.0 / (step + 1)))
                loss = batch.loss(u, q)
                adam.zero_grad()
                (field.theta.grad,) = torch.autograd.grad(loss, [field.theta])
                left = 1 - step / (self.epochs * per_epoch)
                adam.param_groups[0]["lr"] = self.learning_rate * max(left, 0.0)
                adam.step()
                with torch.no_grad():
                    field.theta.clamp_(low, high)
                losses.append(float(loss.detach()))
                step += 1
            history.objective.append(float(np.mean(losses)))
            if monitor.epoch(history.objective[-1] / problem.total_weight):
                break


@dataclass
class _Natural:
    """q by its natural parameters: the precision ``(k, k)`` and precision times mean ``(k, m)``."""

    precision: Tensor
    pull: Tensor

    def moved(self, other: _Natural, rate: float) -> _Natural:
        return _Natural(
            torch.lerp(self.precision, other.precision, rate),
            torch.lerp(self.pull, other.pull, rate),
        )


@dataclass
class _Batch:
    """Some rows of a field, standing for all."""

    field: FieldEnergy
    y: Tensor  # (b, m)
    rows: Tensor
    weight: Tensor
    total: float

    def _known(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """t ``(k, b)``, the noise of one observation ``(b,)``, and k(x, x) ``(b,)``."""
        field, x = self.field, self.field.x[self.rows]
        L = inducing_factor(field.kernel, u, field.theta)
        K = field.kernel.of(Geometry(u, x), field.theta)
        own = field.kernel.diagonal(x, field.theta, noise=False)
        noise = field.kernel.diagonal(x, field.theta) - own + field.noise[self.rows]
        return torch.linalg.solve_triangular(L, K, upper=False), noise, own

    def _scale(self) -> Tensor:
        return self.weight * (self.total / self.weight.sum())

    @torch.no_grad()
    def best(self, u: Tensor) -> _Natural:
        """The q that these rows alone would choose, as if they were all rows."""
        t, noise, _ = self._known(u)
        w = self._scale() / noise
        precision = (t * w) @ t.T
        precision.diagonal().add_(1.0)
        return _Natural(precision, (t * w) @ self.y)

    def loss(self, u: Tensor, q: _Natural) -> Tensor:
        """The bound with these rows standing for all, differentiable in θ."""
        m = self.y.shape[1]
        factor = torch.linalg.cholesky(q.precision)
        mu = torch.cholesky_solve(q.pull, factor)
        t, noise, own = self._known(u)
        known = torch.linalg.solve_triangular(factor, t, upper=False)  # (k, b)
        v = own - t.square().sum(0) + known.square().sum(0)
        wrong = (self.y - t.mT @ mu).square().sum(1) + m * v
        rows = 0.5 * (m * (2 * math.pi * noise).log() + wrong / noise)
        eye = torch.eye(len(u), dtype=t.dtype, device=t.device)
        spread = torch.linalg.solve_triangular(factor, eye, upper=False).square().sum()
        log_det = 2 * factor.diagonal().log().sum()
        divergence = 0.5 * (m * (spread - len(u) + log_det) + mu.square().sum())
        return (self._scale() * rows).sum() + divergence
