r"""EM for components of any family, and generalised EM for components written as functions."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.basic import CentroidEnergy
from groundstate.energy.latent.custom_mixture import CustomMixtureEnergy
from groundstate.energy.latent.family_mixture import FamilyMixtureEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.learn.solvers.latent.kmeans.rows import nearest
from groundstate.learn.solvers.latent.kmeans.start import drawer_of

ROWS = 2**15


@dataclass(frozen=True)
class FamilyEM:
    r"""E: :math:`r_{iz} \propto \pi_zp(x_i\mid z)`. M: θ from sums weighted by r; where components are
    functions of θ, at most ``inner`` steps of L-BFGS on
    :math:`Q = \sum_i w_i\sum_z r_{iz}\log p(x_i;\theta_z)`, which never falls.

    Parameters
    ----------
    init : "kmeans", "random", "random_from_data", or None for θ as it stands
    n_init : runs from different starts; the best is kept
    max_iter, tol : stop when the mean log-likelihood rises by less than ``tol``
    """

    init: str | None = "kmeans"
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-3
    inner: int = 20
    responsibilities: Tensor | None = field(default=None, repr=False)

    def reason_against(self, problem: Problem) -> str | None:
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy: Any = problem.energy
        best: History | None = None
        ends: list[float] = []
        for i in range(self.n_init):
            kept = {name: v.clone() for name, v in energy.state_dict().items()}
            self._start(problem, i)
            found = self._one(problem)
            ends.append(-found.objective[-1])
            if best is None or found.objective[-1] < best.objective[-1]:
                best = found
            else:
                energy.load_state_dict(kept)
        assert best is not None
        best.extra["restarts"] = ends
        if best.stop == "max_iter" and self.tol and current().rank == 0:
            warnings.warn(
                f"EM stopped after {self.max_iter} iterations while the likelihood still rose by "
                f"more than tol={self.tol}; raise max_iter or tol",
                NotConverged,
                stacklevel=3,
            )
        return best

    def _start(self, problem: Problem, i: int) -> None:
        energy: Any = problem.energy
        x, weight = problem.resident["x"], problem.sample_weight
        k = len(energy.logits)
        if isinstance(energy, FamilyMixtureEnergy) and i == 0 and self.init is not None:
            energy.begin(x)
        if self.responsibilities is not None:
            r = self.responsibilities.to(x.device).double()
        elif self.init is None:
            return
        elif self.init == "random":
            r = drawer_of(x, weight, problem.key.fold("start", i)).uniform(k)
            r = r / r.sum(1, keepdim=True)
        else:
            key = problem.key.fold("start", i)
            if self.init == "kmeans" and k > 1:
                centroids = CentroidEnergy(k, x.shape[1]).to(x)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NotConverged)
                    rule = Naive(latent="minimise")
                    Lloyd().run(Problem(centroids, rule, {"x": x}, weight, key=key))
                at = nearest(x, centroids.mu)[0].long()
            else:
                at = nearest(x, drawer_of(x, weight, key).random(k).to(x.dtype))[0].long()
            r = torch.nn.functional.one_hot(at, k).double()
        self._maximise(problem, r)

    def _one(self, problem: Problem) -> History:
        history = History(solver="FamilyEM")
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            r, J = self._expect(problem)
            history.extra["log_likelihood"] = [-J]
            for _ in range(self.max_iter):
                start, before = time.perf_counter(), J
                self._maximise(problem, r)
                r, J = self._expect(problem)
                history.objective.append(J)
                history.extra["log_likelihood"].append(-J)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(J):
                    history.stop = "callback"
                    break
                if before - J < self.tol:
                    history.converged = True
                    history.stop = f"J fell by less than tol={self.tol}"
                    break
        history.n_iter = len(history.objective)
        history.stop = history.stop or "max_iter"
        return history

    def _expect(self, problem: Problem) -> tuple[Tensor, float]:
        """Responsibilities ``(N, k)`` and minus the mean log-likelihood."""
        energy: Any = problem.energy
        x, weight = problem.resident["x"], problem.sample_weight
        table = torch.cat([energy.energies(part).double() for part in x.split(ROWS)])
        log_p = torch.logsumexp(-table, 1)
        w = torch.ones_like(log_p) if weight is None else weight.double()
        sums = current().sum(torch.stack([w @ log_p, w.sum()]))
        value = float(-sums[0] / sums[1])
        if value != value:
            raise FloatingPointError(
                "the likelihood became NaN in EM; look for values outside the family's domain"
            )
        return torch.softmax(-table, 1), value

    def _maximise(self, problem: Problem, r: Tensor) -> None:
        energy: Any = problem.energy
        x, weight = problem.resident["x"], problem.sample_weight
        r = r if weight is None else r * weight.double()[:, None]
        if isinstance(energy, CustomMixtureEnergy):
            self._climb(energy, x, r)
            return
        total: dict[str, Tensor] = {}
        for part, share in zip(x.split(ROWS), r.split(ROWS), strict=True):
            for name, value in energy.sums(part.double(), share).items():
                total[name] = total[name] + value if name in total else value
        energy.from_sums(current().sum_dict(total))

    def _climb(self, energy: CustomMixtureEnergy, x: Tensor, r: Tensor) -> None:
        """Weights in closed form, θ by L-BFGS on Q; a step that would lower Q is taken back."""
        n = current().sum(r.sum(0)) + 10 * torch.finfo(torch.float64).eps
        energy.logits.copy_((n / n.sum()).log().to(energy.logits))
        own = [energy.theta]
        if isinstance(energy.component, torch.nn.Module):
            own += list(energy.component.parameters())
        kept = [p.detach().clone() for p in own]

        def loss() -> Tensor:
            return -(r * energy.log_prob(x)).sum() / r.sum()

        before = float(loss())
        solver = torch.optim.LBFGS(own, max_iter=self.inner, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            solver.zero_grad()
            value = loss()
            value.backward()
            return value

        with torch.enable_grad():
            solver.step(closure)
        after = float(loss())
        if not after <= before:
            for parameter, value in zip(own, kept, strict=True):
                parameter.copy_(value)
