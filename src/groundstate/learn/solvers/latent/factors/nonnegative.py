r"""Non-negative factors: codes and parts by turns."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.latent.nonnegative_codes import NonnegativeCodeEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.math.linalg.nonnegative.descent import sweep
from groundstate.math.linalg.nonnegative.multiplicative import Steps, penalty, product
from groundstate.math.linalg.nonnegative.start import random_start, singular_start

EVERY = 10  # multiplicative steps between looks at the objective


@dataclass(frozen=True)
class NonnegativeFactors:
    r"""Lower :math:`\sum_i w_i e(x_i, z_i) + \lambda_1\|H\|_1 + \tfrac{\lambda_2}2\|H\|^2` over
    :math:`Z, H \ge 0`, one factor after the other.

    Parameters
    ----------
    solver : "cd" (coordinate descent, squared distance only) or "mu" (multiplicative steps)
    init : "nndsvd", "nndsvda", "nndsvdar", "random", "custom", or None
    tol : "cd" stops when projected gradients are below this part of those of the first sweep, "mu" when
        ten steps lower the distance by less than this part of that at the start
    max_iter : sweeps or steps at most
    l1, l2 : penalties of H
    shuffle : whether "cd" takes the coordinates in random order
    start : Z ``(n, l)`` and H ``(l, d)`` of "custom"
    """

    solver: str = "cd"
    init: str | None = None
    tol: float = 1e-4
    max_iter: int = 200
    l1: float = 0.0
    l2: float = 0.0
    shuffle: bool = False
    start: Any = field(default=None, compare=False)

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, NonnegativeCodeEnergy):
            return "it is for codes without negative entries"
        return None if problem.is_resident else "it needs resident x"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        began = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, NonnegativeCodeEnergy)
        x, weight = problem.resident["x"], problem.sample_weight
        history = History(solver=f"NonnegativeFactors ({self.solver})", stop="max_iter")
        W, Ht = self._begin(problem, energy, len(energy.H))
        steps = Steps(x, energy.beta, None if weight is None else weight.to(x.dtype))
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=self.max_iter)) as monitor:
            how = self._descent if self.solver == "cd" else self._multiplied
            how(energy, steps, W, Ht, history, monitor, problem)
        energy.set(Ht.T)
        loss = steps.loss(W, Ht)
        history.objective.append(loss + self._penalties(energy, steps, W, Ht))
        history.about["codes"], history.about["loss"] = W, loss
        history.seconds.append(time.perf_counter() - began)
        if not history.converged and history.stop == "max_iter" and self.tol > 0:
            warnings.warn(
                f"Maximum number of iterations {self.max_iter} reached. Increase it to improve "
                "convergence.",
                NotConverged,
                stacklevel=4,
            )
        return history

    def _penalties(
        self, energy: NonnegativeCodeEnergy, steps: Steps, W: Tensor, Ht: Tensor
    ) -> float:
        own = penalty(W, energy.l1, energy.l2, steps.weight)
        return own + penalty(Ht, self.l1, self.l2)

    def _begin(
        self, problem: Problem, energy: NonnegativeCodeEnergy, k: int
    ) -> tuple[Tensor, Tensor]:
        x, weight = problem.resident["x"], problem.sample_weight
        if self.init == "custom":
            W, H = (torch.as_tensor(v).to(x.device, x.dtype) for v in self.start)
            return W.clone().contiguous(), H.T.clone(memory_format=torch.contiguous_format)
        generator = problem.key.fold("parts").torch(torch.device("cpu"))
        rows = len(x) if weight is None else int(weight.sum())
        few = k <= min(rows, x.shape[1])
        if self.init == "random" or (self.init is None and not few):
            return random_start(x, k, weight, generator)
        if not few:
            raise ValueError(
                f"init = '{self.init}' can only be used when n_components <= min(n_samples, "
                f"n_features), got n_components={k} for {rows} rows of {x.shape[1]} features"
            )
        W, Ht = singular_start(x, k, weight, self.init or "nndsvda", generator)
        return W, Ht

    def _descent(
        self, energy: NonnegativeCodeEnergy, steps: Steps, W: Tensor, Ht: Tensor,
        history: History, monitor: Monitor, problem: Problem,
    ) -> None:  # fmt: skip
        k = W.shape[1]
        square = _square(steps) if problem.callbacks else 0.0
        order, first = torch.arange(k), 0.0
        generator = problem.key.fold("order").torch(torch.device("cpu"))
        for history.n_iter in range(1, self.max_iter + 1):
            if self.shuffle:
                order = torch.randperm(k, generator=generator)
            codes = self._turn(W, product(Ht.T, Ht), steps.dot(Ht), energy, order, steps.weight)
            own = steps._weighted(W)
            G, P = product(own.T, W), steps.tdot(own)
            if self.shuffle:
                order = torch.randperm(k, generator=generator)
            moved = float(codes + self._turn(Ht, G, P, self, order))
            if problem.callbacks:
                loss = square + float(0.5 * ((Ht.T @ Ht) * G).sum() - (P * Ht).sum())
                history.objective.append(loss + self._penalties(energy, steps, W, Ht))
            first = moved if history.n_iter == 1 else first
            history.extra.setdefault("violation", []).append(moved)
            watched = history.objective[-1] if problem.callbacks else math.nan
            if monitor.epoch(watched) or moved <= self.tol * first:
                history.converged, history.stop = True, "tol"
                break

    def _turn(
        self, A: Tensor, G: Tensor, P: Tensor, given: Any, order: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """One sweep of a factor, with the penalties of ``given``."""
        if given.l2:
            G = G.clone()
            G.diagonal().add_(given.l2)
        P = P - given.l1 if given.l1 else P.contiguous()
        return sweep(A, G, P, order, weight)

    def _multiplied(
        self, energy: NonnegativeCodeEnergy, steps: Steps, W: Tensor, Ht: Tensor,
        history: History, monitor: Monitor, problem: Problem,
    ) -> None:  # fmt: skip
        first = before = math.sqrt(2 * steps.loss(W, Ht))
        for history.n_iter in range(1, self.max_iter + 1):
            steps.codes(W, Ht, energy.l1, energy.l2)
            steps.turn(Ht, W, self.l1, self.l2)
            look = self.tol > 0 and history.n_iter % EVERY == 0
            loss = steps.loss(W, Ht) if look or problem.callbacks else math.nan
            if look or problem.callbacks:
                history.objective.append(loss + self._penalties(energy, steps, W, Ht))
            now = math.sqrt(2 * loss) if look else math.nan
            if monitor.epoch(loss) or (look and before - now < self.tol * first):
                history.converged, history.stop = True, "tol"
                break
            before = now if look else before


def _square(steps: Steps) -> float:
    r"""Half of :math:`\sum_i w_i\|x_i\|^2`."""
    x, w = steps.x, steps.weight
    if x.layout != torch.strided:
        each = x.values().double().square()
        if w is not None:
            each = each * w.double().repeat_interleave(x.crow_indices().diff().long())
        return 0.5 * float(each.sum())
    each = x.double().square().sum(1)
    return 0.5 * float(each.sum() if w is None else each @ w.double())
