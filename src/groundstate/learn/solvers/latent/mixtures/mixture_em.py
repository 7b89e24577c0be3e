r"""EM for mixtures of Gaussians, with the two halves fused over cached tiles of rows."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from groundstate.compute.device import threads
from groundstate.compute.tiles import one_blas_thread
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.solvers.em.em import EM
from groundstate.learn.solvers.em.online import Move
from groundstate.learn.solvers.em.steps import MStep
from groundstate.learn.solvers.latent.mixtures.missing import MissingM
from groundstate.learn.solvers.latent.mixtures.online import Gradient, Rate
from groundstate.learn.solvers.latent.mixtures.restarts import best_of
from groundstate.learn.solvers.latent.mixtures.starts import STARTS, has_nan, start_moments
from groundstate.learn.solvers.latent.mixtures.steps import FEW, SMALL, GaussianM
from groundstate.registry import solvers


@solvers.register(
    formula=r"r_{iz} \propto \pi_z N(x_i; \mu_z, \Sigma_z),\quad "
    r"(\pi, \mu, \Sigma)_z \leftarrow \text{moments of } r_{\cdot z}",
    make=lambda energy: MixtureEM(),
)
@dataclass(frozen=True)
class MixtureEM(EM):
    r"""``EM`` for :math:`e = -\log\pi_z - \log N(x; \mu_z, \Sigma_z)`, one pass per iteration.

    Log densities and statistics are linear in the features :math:`(y_iy_j)_{i\le j}, y, 1` of a
    whitened row y, so a tile of rows costs two matrix products and never leaves the cache. Where
    whitening cannot keep the digits (components far smaller than the data) the differences
    :math:`x - \mu_z` themselves are used.

    Parameters
    ----------
    init : "kmeans", "k-means++", "random", "random_from_data", or None for θ as it stands
    given : ``"weights"``, ``"means"`` and ``"precisions"`` that replace what ``init`` found; when
        all three are given nothing else is drawn
    n_init : runs from different starts that share every pass over the rows; the best is kept
    online : how a mini-batch moves θ: "stepwise", by moving averages of the statistics, or
        "gradient", by :math:`\mu_z \leftarrow \mu_z + \eta_t\,\overline{\alpha_z(x - \mu_z)}` and the
        like for π and Σ
    rate : :math:`\eta_t` of "gradient", a number or a function of the finished mini-batches; None is
        :math:`\min(1, k(t+2)^{-0.7})`
    max_iter, tol, T, batch_size, step, audit : as for ``EM``

    Examples
    --------
    >>> from groundstate.learn import NLL, fit
    >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [3.0]], dtype=torch.float64)
    >>> energy = GaussianMixtureEnergy(2, 1, reg_covar=0.0).double()
    >>> _ = energy.mu.data.copy_(torch.tensor([[-1.0], [1.0]]))
    >>> history = fit(energy, {"x": x}, NLL(), MixtureEM(max_iter=2, tol=None))
    >>> [round(v, 6) for v in history.extra["log_likelihood"]]
    [-2.168465, -1.855797, -1.772379]
    """

    init: str | None = None
    given: Mapping[str, Tensor] | None = None
    online: str = "stepwise"
    rate: Rate = None
    chunk_rows: int = 2**20

    def __post_init__(self) -> None:
        EM(self.max_iter or 1, n_init=self.n_init, T=self.T, batch_size=self.batch_size)  # checks
        if self.init is not None and self.init not in STARTS:
            raise ValueError(f"init must be one of {', '.join(STARTS)} or None, got {self.init!r}")
        if self.online not in ("stepwise", "gradient"):
            raise ValueError(f"online must be 'stepwise' or 'gradient', got {self.online!r}")
        if isinstance(self.rate, int | float) and not 0 < self.rate <= 1:
            raise ValueError(f"the rate of gradient steps must be in (0, 1], got {self.rate}")

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, GaussianMixtureEnergy):
            return "it is for a mixture of Gaussians"
        if self.init is not None and not problem.is_resident:
            return "starts are drawn from resident rows; set θ and pass init=None"
        if self.init is None and self.n_init > 1:
            return f"n_init={self.n_init} needs an init to draw new starts with"
        return EM.reason_against(_with_one_start(self), problem)

    def m_step(self, problem: Problem) -> MStep:
        if self.inner is not None or self.batch_size is not None:
            return super().m_step(problem)
        if _has_nan(problem):
            return MissingM(problem, "z")
        return GaussianM(problem, "z")

    def online_move(self, problem: Problem, m: MStep) -> Move:
        if self.online == "gradient":
            return Gradient(problem, self.rate)
        return super().online_move(problem, m)

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, GaussianMixtureEnergy)
        if self.max_iter == 0:
            history = self._started(problem)
        elif self._needs_no_steps(problem):
            history = self._at_once(problem)
        elif self.n_init == 1 or len(energy.mu) == 1:  # one component has one start
            history = self._alone(problem, 0)
        elif self.batch_size is not None or self.inner is not None or self.audit:
            history = self._in_turn(problem)
        else:
            history = self._together(problem)
            self._say(history)
        history.solver = "MixtureEM"
        history.extra.setdefault("restarts", history.extra.get("log_likelihood", [])[-1:])
        return history

    def _started(self, problem: Problem) -> History:
        """θ at the first start, and its likelihood."""
        if self.init is not None or self.given:
            start_mixture(problem, self, 0)
        J, _ = self._e_step(self.m_step(problem), self.temperature(problem, 0))
        return History(solver="MixtureEM", stop="max_iter", extra={"log_likelihood": [-J]})

    def _needs_no_steps(self, problem: Problem) -> bool:
        """Whether the start is the optimum: one component, moments of all rows, nobody who watches."""
        energy = problem.energy
        assert isinstance(energy, GaussianMixtureEnergy)
        plain = self.init in ("kmeans", "random") and not (self.given or self.inner or self.audit)
        plain = plain and self.batch_size is None and not problem.callbacks
        return plain and len(energy.mu) == 1 and not _has_nan(problem)

    def _at_once(self, problem: Problem) -> History:
        """Mean and covariance of all rows, which an iteration would find again."""
        start = time.perf_counter()
        with _few_threads(problem, 1):
            start_mixture(problem, self, 0)
            J = float(problem.objective())
        history = History(solver="MixtureEM", converged=True, stop="one component", n_iter=1)
        history.objective, history.extra = [J], {"log_likelihood": [-J, -J]}
        history.seconds = [time.perf_counter() - start]
        return history

    def _alone(self, problem: Problem, i: int) -> History:
        numbers = _numbers(problem)
        with ExitStack() as stack:  # asked for once, not in every pass
            if numbers <= SMALL:
                stack.enter_context(one_blas_thread())
            if numbers <= FEW:
                stack.enter_context(threads(1))
            if self.init is not None or self.given:
                start_mixture(problem, self, i)
            return EM.run(replace(self, n_init=1), problem)

    def _together(self, problem: Problem) -> History:
        """The best of ``n_init`` runs, which share their passes."""
        step = self.m_step(problem)
        assert isinstance(step, GaussianM)
        with _few_threads(problem, self.n_init):
            return best_of(
                problem, step, self.n_init, lambda own, i: start_mixture(own, self, i),
                self.max_iter, self.tol, lambda t: self.temperature(problem, t),
            )  # fmt: skip

    def _in_turn(self, problem: Problem) -> History:
        """The best of ``n_init`` runs, where they cannot share their passes."""
        found: list[tuple[History, dict[str, Tensor]]] = []
        for i in range(self.n_init):
            history = self._alone(problem, i)
            theta = {name: value.clone() for name, value in problem.energy.state_dict().items()}
            found.append((history, theta))
            if history.stop == "callback":
                break
        history, theta = min(found, key=lambda pair: pair[0].objective[-1])
        problem.energy.load_state_dict(theta)
        history.extra["restarts"] = [-one.objective[-1] for one, _ in found]
        return history


def _with_one_start(solver: MixtureEM) -> EM:
    return EM(T=solver.T, inner=solver.inner, batch_size=solver.batch_size)


def _numbers(problem: Problem) -> float:
    return problem.resident["x"].numel() if problem.is_resident else math.inf


def _few_threads(problem: Problem, starts: int) -> AbstractContextManager[None]:
    """One thread where all starts together take few differences from their means."""
    energy = problem.energy
    assert isinstance(energy, GaussianMixtureEnergy)
    few = starts * len(energy.mu) * _numbers(problem) <= SMALL
    return threads(1) if few else nullcontext()


def _has_nan(problem: Problem) -> bool:
    return problem.is_resident and has_nan(problem.resident["x"])


@torch.no_grad()
def start_mixture(problem: Problem, solver: MixtureEM, i: int = 0) -> None:
    """Set θ to a start: components of a first clustering, or of drawn rows, or what is given."""
    energy = problem.energy
    assert isinstance(energy, GaussianMixtureEnergy)
    given = dict(solver.given or {})
    if not {"weights", "means", "precisions"} <= set(given) and solver.init is not None:
        n, mean, cov = start_moments(problem, energy, solver.init, i)
        energy.mu.copy_(mean)  # also of components without rows
        energy.from_moments(n, mean, cov)
    if "weights" in given:
        energy.logits.copy_(given["weights"].to(energy.logits).log())
    if "means" in given:
        energy.mu.copy_(given["means"].to(energy.mu))
    if "precisions" in given:
        energy.from_precisions(given["precisions"].to(energy.mu.device))
