r"""Accelerated proximal gradient steps: penalties with kinks on any smooth objective."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Penalty, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import SeparablePenalty, SumPenalty
from groundstate.learn.solvers.lbfgs import LBFGS
from groundstate.learn.train.penalty import Regulariser
from groundstate.registry import solvers


@solvers.register(
    formula=r"\theta \leftarrow \mathrm{prox}_{\Omega/L}(\theta - \nabla f/L)",
    make=lambda energy: Proximal(),
)
@dataclass(frozen=True)
class Proximal:
    r"""Lower :math:`J = f + \Omega` by :math:`\theta \leftarrow \mathrm{prox}_{\Omega/L}(\vartheta -
    \nabla f(\vartheta)/L)` until :math:`-\nabla f` is within ``tol`` of a subgradient of Ω.

    f holds the loss and the smooth penalties, Ω those with a kink (``L1``, ``ElasticNet``), whose
    proximal map makes exact zeros. ϑ runs ahead of θ by Nesterov's rule and starts anew whenever it
    points uphill; the curvature L is found by trial.

    Parameters
    ----------
    max_iter : steps at most
    tol : largest distance of an entry from optimality at the end, of the mean objective
    chunk_rows : rows of one evaluation

    Examples
    --------
    >>> from groundstate.energy import GLMEnergy
    >>> from groundstate.learn import L1, Naive, fit
    >>> x = torch.eye(2).double()
    >>> energy = GLMEnergy(2, family="poisson", bias=False).double()
    >>> data = {"x": x, "y": torch.tensor([[3.0], [1.5]]).double()}
    >>> fit(energy, data, Naive(), penalty=L1(1.0)).solver  # log 2, and exactly 0
    'Proximal'
    >>> [round(w, 6) for w in energy.W[0].tolist()]
    [0.693147, 0.0]
    """

    max_iter: int = 2000
    tol: float = 1e-6
    chunk_rows: int = 2**18

    def reason_against(self, problem: Problem) -> str | None:
        if problem.penalty is None or problem.penalty.smooth:
            return "there is no penalty with a kink, which L-BFGS needs no proximal map for"
        reason = LBFGS().reason_against(replace(problem, penalty=None))
        if reason is not None:
            return reason.replace("L-BFGS", "it")
        rough = [p for p in _split(problem).gradient if not p.smooth]
        if rough:
            return f"{type(rough[0]).__name__} has no simple proximal map here"
        return None

    def fits(self, problem: Problem) -> bool:
        """Small enough to be the default choice."""
        return LBFGS().fits(problem)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        history = History(solver="Proximal")
        run = Run(problem, history, self.max_iter)
        f = _Smooth(problem, self.chunk_rows)
        theta = ahead = f.start()
        value, slope = f.at(ahead)
        curvature, t, far = 1.0, 1.0, float("inf")
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_iter:
                begun = time.perf_counter()
                while True:
                    new = f.prox(ahead - slope / curvature, 1 / curvature)
                    move = new - ahead
                    bound = value + float(slope @ move) + 0.5 * curvature * float(move @ move)
                    reached, own = f.at(new)
                    if reached <= bound + 1e-15 * abs(value) or curvature > 1e300:
                        break
                    curvature *= 2
                history.objective.append(reached + f.kinks(new))
                far = f.distance(new, own)
                history.seconds.append(time.perf_counter() - begun)
                if float(move @ (new - theta)) < 0:  # uphill: forget the speed
                    t = 1.0
                after = 0.5 * (1 + (1 + 4 * t * t) ** 0.5)
                theta, ahead = new, new + ((t - 1) / after) * (new - theta)
                t, curvature = after, 0.95 * curvature
                if monitor.epoch(history.objective[-1]) or far <= self.tol:
                    break
                value, slope = (reached, own) if bool((ahead == new).all()) else f.at(ahead)
            f.scatter(theta)
        if history.stop == "callback":
            return history
        history.converged = far <= self.tol
        history.stop = "optimality" if history.converged else "max_iter"
        if not history.converged and current().rank == 0:
            warnings.warn(
                f"the proximal steps stopped after {self.max_iter} before the optimality conditions "
                f"held to tol={self.tol} (off by {far:.3g}); raise max_iter or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history


def _split(problem: Problem) -> Regulariser:
    return Regulariser(
        problem.penalty, problem.energy, problem.total_weight, decay=False, prox=True
    )


class _Smooth:
    """The smooth part of the objective at a vector θ of float64, and the maps of the rest."""

    def __init__(self, problem: Problem, chunk_rows: int) -> None:
        split = _split(problem)
        smooth: Penalty | None = SumPenalty(*split.gradient) if split.gradient else None
        self.problem, self.chunk_rows = replace(problem, penalty=smooth), chunk_rows
        self.total = split.total
        self.parameters = [p for p in problem.energy.parameters() if p.requires_grad]
        acts = {id(p): part for part, p in split.proximal}
        at, self.pieces = 0, list[tuple[slice, Tensor, SeparablePenalty | None]]()
        for p in self.parameters:
            self.pieces.append((slice(at, at + p.numel()), p, acts.get(id(p))))
            at += p.numel()

    def start(self) -> Tensor:
        return torch.cat([p.detach().reshape(-1).double() for p in self.parameters])

    def scatter(self, theta: Tensor) -> None:
        for piece, p, _ in self.pieces:
            p.copy_(theta[piece].reshape(p.shape))

    def at(self, theta: Tensor) -> tuple[float, Tensor]:
        self.scatter(theta)
        return self.problem.value_and_gradient(self.parameters, self.chunk_rows)

    def kinks(self, theta: Tensor) -> float:
        found = [part.value_of(theta[at]) for at, _, part in self.pieces if part is not None]
        return float(sum(found, theta.new_zeros(()))) / self.total

    def prox(self, theta: Tensor, step: float) -> Tensor:
        out = theta.clone()
        for at, p, part in self.pieces:
            if part is not None:
                shaped = theta[at].reshape(p.shape)
                out[at] = part.prox_of(shaped, step / self.total).reshape(-1)
        return out

    def distance(self, theta: Tensor, slope: Tensor) -> float:
        worst = []
        for at, p, part in self.pieces:
            own = slope[at].reshape(p.shape)
            if part is not None:
                own = part.distance_of(theta[at].reshape(p.shape), own, 1 / self.total)
            worst.append(own.abs().max())
        return float(torch.stack(worst).max())
