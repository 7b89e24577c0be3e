r"""Factors by stochastic steps: the codes of a batch, then one step on the decoder."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.latent.probabilistic_pca import ProbabilisticPCAEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.factors.eigen_factors import Noise, fixed_axes, refusal
from groundstate.learn.solvers.latent.factors.gaussian_fit import Factors
from groundstate.learn.train.feed import Feed
from groundstate.registry import solvers


@dataclass
class Walk:
    """Where stochastic steps are, and the mean of where they were.

    Attributes
    ----------
    W, b, log_noise : the current values, in double precision
    mean : the averaged ones, by name
    steps : steps so far
    """

    W: Tensor
    b: Tensor
    log_noise: Tensor
    prior: float
    steps: int = 0
    mean: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def start(cls, energy: ProbabilisticPCAEnergy, x: Tensor, noise: Noise) -> Walk:
        """From the mean and the variance of a first batch, and the energy's own W."""
        b = x.double().mean(0)
        variance = (x.double() - b).square().mean().clamp_min(torch.finfo(torch.float64).tiny)
        scale = (variance / energy.W.shape[1] / energy.prior_variance / 2).sqrt()
        nu = 0.5 * variance if noise == "ml" else variance.new_tensor(float(noise))
        return cls(energy.W.detach().double() * scale, b, nu.log(), energy.prior_variance)

    def step(
        self, x: Tensor, weight: Tensor | None, rate: float, learn_noise: bool, width: float | None
    ) -> None:
        r"""One step along the gradients of the bound, in units of the noise.

        :math:`\nu\nabla_W J = \overline{(x-b)m^\top} - W(S + \overline{mm^\top})`,
        :math:`\nu\nabla_b J = \overline{x - b - Wm}` and
        :math:`\tfrac2d\nabla_{\log\nu}J = \bar r/(d\nu) - 1`, r the expected squared error of a row.
        """
        diff = x.double() - self.b
        w = None if weight is None else weight.double() / weight.double().sum()
        beta, S = Factors(self.W, self.log_noise.exp(), self.prior).encoder()
        if width is not None:
            S = width * torch.eye(len(S)).to(S)
        m = diff @ beta.T
        weighted = m / len(m) if w is None else m * w[:, None]
        second = S + m.T @ weighted
        error = diff - m @ self.W.T
        mean_error = error.mean(0) if w is None else w @ error
        square = error.square().sum(1)
        left = (square.mean() if w is None else w @ square) + ((self.W @ S) * self.W).sum()
        d = len(self.b)
        # a step of one is the whole way along the code of largest second moment
        size = rate / max(1.0, float(torch.linalg.matrix_norm(second, 2)))
        self.W = self.W + size * (diff.T @ weighted - self.W @ second)
        self.b = self.b + rate * mean_error
        if learn_noise:
            self.log_noise = self.log_noise + rate * (left / (d * self.log_noise.exp()) - 1).clamp(
                -1.0, 1.0
            )
        self.steps += 1
        self._average()

    def _average(self, late: float = 8.0) -> None:
        """Polyak's mean, in which late steps count more."""
        share = (late + 1) / (self.steps + late)
        for name in ("W", "b", "log_noise"):
            new = getattr(self, name)
            old = self.mean.get(name, new)
            self.mean[name] = old + share * (new - old)

    @torch.no_grad()
    def write(self, energy: ProbabilisticPCAEnergy) -> None:
        """The averaged values as θ."""
        for name, value in self.mean.items():
            getattr(energy, name).copy_(value)

    def state(self) -> dict[str, Any]:
        """Everything as arrays, for the store."""
        out = {name: getattr(self, name).cpu().numpy() for name in ("W", "b", "log_noise")}
        averaged = {f"mean_{name}": value.cpu().numpy() for name, value in self.mean.items()}
        return {**out, **averaged, "steps": self.steps, "prior": self.prior}

    @classmethod
    def restored(cls, state: dict[str, Any], device: torch.device) -> Walk:
        """The walk of a ``state()``."""
        own = {n: torch.as_tensor(state[n], dtype=torch.float64, device=device)
               for n in ("W", "b", "log_noise", "mean_W", "mean_b", "mean_log_noise")}  # fmt: skip
        mean = {n: own[f"mean_{n}"] for n in ("W", "b", "log_noise")}
        return cls(own["W"], own["b"], own["log_noise"], state["prior"], state["steps"], mean)


def rate_of(step: int) -> float:
    """Rates :math:`0.5/(1 + t/20)^{0.6}`."""
    return float(0.5 / (1 + step / 20) ** 0.6)


@solvers.register(
    formula=r"W \leftarrow W + \eta_t\,[\overline{(x-b)m^\top} - W(S + \overline{mm^\top})]",
    make=lambda energy: FactorSGD(max_iter=20, batch_size=16),
)
@dataclass(frozen=True)
class FactorSGD:
    r"""Exact codes for a batch of rows, one step on W, b and log ν, and the mean of the steps.

    Parameters
    ----------
    noise : ν, or "ml"
    width : :math:`s^2` of a restricted q; None is the exact posterior
    batch_size : rows of a batch
    max_iter : passes over the rows at most
    tol : stop when a pass gains less than this, in nats per row; 0: never
    """

    noise: Noise = "ml"
    width: float | None = None
    batch_size: int = 100
    max_iter: int = 5
    tol: float = 0.0

    def reason_against(self, problem: Problem) -> str | None:
        return refusal(problem)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, ProbabilisticPCAEnergy)
        history = History(converged=True, solver="FactorSGD", stop="max_iter")
        feed = Feed(problem, self.batch_size)
        walk: Walk | None = None
        before = math.inf
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=self.max_iter)) as monitor:
            for history.n_iter in range(1, self.max_iter + 1):
                start = time.perf_counter()
                for batch, weight, _ in feed.epoch(history.n_iter, order="order"):
                    x = batch["x"]
                    if walk is None:
                        walk = Walk.start(energy, x, self.noise)
                    walk.step(x, weight, rate_of(walk.steps), self.noise == "ml", self.width)
                if walk is not None:
                    walk.write(energy)
                history.seconds.append(time.perf_counter() - start)
                asked = bool(problem.callbacks) or self.tol > 0
                value = float(problem.objective()) if asked else math.nan
                if monitor.epoch(value):
                    break
                if self.tol > 0 and before - value < self.tol:
                    history.stop = "tol"
                    break
                before = value
        fixed_axes(energy)
        return history
