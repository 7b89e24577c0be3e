r"""A kernel density remembers its rows; its bandwidth is given, a rule of thumb, or found by likelihood."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from groundstate.compute.rows.distinct import merged
from groundstate.energy.neighbors.kernel_density import KernelDensityEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run

PAIRS = 2**24  # of rows that one look at the likelihood takes
LOOKS = 32  # bandwidths that are tried before the best of them is refined
SPAN = (0.02, 3.0)  # of Scott's bandwidth, in which one is looked for


@dataclass(frozen=True)
class KernelWidth:
    r"""Keep rows and choose the bandwidth h.

    "likelihood" maximises :math:`\sum_iw_i\log\sum_{j \ne i}w_jK_h(x_i - x_j)`, each row by the others;
    copies of a row are left out with it.

    Parameters
    ----------
    bandwidth : number, "scott", "silverman" or "likelihood"
    """

    bandwidth: Any = 1.0

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, KernelDensityEnergy):
            return "it is for a kernel density"
        return None if problem.is_resident else "it needs resident x"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        history = History(converged=True, solver="KernelWidth", stop="closed form", n_iter=1)
        energy = problem.energy
        assert isinstance(energy, KernelDensityEnergy)
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            rows, w = merged({"x": problem.resident["x"].detach()}, problem.sample_weight)
            self._learn(energy, rows["x"], w.double())
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(float("nan"))
        return history

    def _learn(self, energy: KernelDensityEnergy, x: Tensor, w: Tensor) -> None:
        many, d = float(w.sum()), energy.d
        scott = many ** (-1 / (d + 4))
        spill = [(k - 1) / k * min(1.0, scott**2) if k > 1 else 0.0 for k in energy.levels]
        if self.bandwidth == "scott":
            h = scott
        elif self.bandwidth == "silverman":
            h = (many * (d + 2) / 4) ** (-1 / (d + 4))
        elif self.bandwidth == "likelihood":
            energy.remember(x, w, 1.0, spill)
            real = [j for j in range(d) if not energy.levels[j]]
            h = self._found(energy, x, w, scott * _spread(x[:, real], w))
        else:
            h = float(self.bandwidth)
        energy.remember(x, w, h, spill)

    def _found(self, energy: KernelDensityEnergy, x: Tensor, w: Tensor, guess: float) -> float:
        """The bandwidth of the highest likelihood of rows by the others."""
        if len(x) < 2 or not guess > 0:
            return 1.0
        asked = min(len(x), max(100, PAIRS // len(x)))  # rows are in the order of their hashes
        score = _left_out(energy, x, w, asked)
        tried = np.geomspace(SPAN[0] * guess, SPAN[1] * guess, LOOKS)
        values = [score(h) for h in tried]
        best = int(np.argmax(values))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, LOOKS - 1)]
        found = minimize_scalar(
            lambda log_h: -score(math.exp(log_h)), bounds=(math.log(low), math.log(high)),
            method="bounded", options={"xatol": 1e-3},
        )  # fmt: skip
        return math.exp(found.x) if -found.fun > values[best] else float(tried[best])


def _left_out(
    energy: KernelDensityEnergy, x: Tensor, w: Tensor, asked: int
) -> Callable[[float], float]:
    """Mean log density of the first rows, each by all others, as a function of h."""
    rest = (w.sum() / (w.sum() - w[:asked])).log()

    def score(h: float) -> float:
        energy.bandwidth.fill_(h)
        total = 0.0
        step = max(1, 2**20 // len(x))
        for at in range(0, asked, step):
            own = x[at : min(at + step, asked)]
            terms = energy.log_terms(own.to(energy.kept)).double()
            index = torch.arange(len(own), device=x.device)
            terms[index, at + index] = -torch.inf
            log_p = terms.logsumexp(1) + rest[at : at + len(own)]
            total += float((w[at : at + len(own)] * log_p.clamp_min(-1e6)).sum())
        return total / float(w[:asked].sum())

    return score


def _spread(x: Tensor, w: Tensor) -> float:
    """Root of the mean variance of the columns."""
    if not x.shape[1]:
        return 0.0
    share = (w / w.sum())[:, None]
    off = x.double() - (share * x).sum(0)
    return math.sqrt(float((share * off.square()).sum(0).mean()))
