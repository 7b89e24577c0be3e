r"""EM of models that sum out what is hidden themselves: expected statistics, then the closed form."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.rows import Rows
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.softmin import SoftMin
from groundstate.registry import solvers


@runtime_checkable
class Expects(Protocol):
    """An energy that gives the expected statistics of rows of which parts are hidden."""

    def expected(self, weights: Tensor | None, x: Any) -> tuple[dict[str, Tensor], Tensor]:
        """Sums over rows, which add over chunks and shards, and log p of each row, ``(B,)``."""
        ...

    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Set θ to the maximiser of the expected log-likelihood."""
        ...


@solvers.register(
    formula=r"\theta \leftarrow \arg\max_\theta \sum_i w_i\,\mathbb{E}_{h \sim p(h \mid x_i)}"
    r"[\log p(x_i, h; \theta)]",
    make=lambda energy: ExpectedEM(),
)
@dataclass(frozen=True)
class ExpectedEM:
    r"""Expectation maximisation for energies that sum out what is hidden by themselves: the states of
    a Markov chain, the unknown values of a network, the choices of a circuit.

    E: :math:`s = \sum_iw_i\,\mathbb{E}[t(x_i, h)]`. M: θ of highest likelihood given s. The
    log-likelihood never falls. Rows without anything hidden need one step.

    Parameters
    ----------
    tol : stop when an iteration gains less, in nats per row
    max_iter : iterations at most
    chunk_rows : rows of one pass
    quiet : do not warn where ``max_iter`` ends it (nor does it with ``tol=0``)
    """

    tol: float = 1e-6
    max_iter: int = 100
    chunk_rows: int = 2**16
    quiet: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, Expects):
            return f"{type(problem.energy).__name__} gives no expected statistics"
        rule = problem.rule
        if not isinstance(rule, SoftMin) or rule.T != 1:
            return "it maximises the likelihood: SoftMin at T=1"
        if set(problem.names) != {"x"}:
            return "it needs x alone"
        return None if problem.penalty is None else "it has no penalty"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy: Any = problem.energy
        history = History(solver="ExpectedEM", stop="max_iter")
        values: list[float] = []
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=self.max_iter)) as monitor:
            for history.n_iter in range(1, self.max_iter + 1):
                start = time.perf_counter()
                sums, value = self._expectation(energy, problem)
                values.append(value)
                history.objective.append(-value)
                history.seconds.append(time.perf_counter() - start)
                gain = value - values[-2] if len(values) > 1 else math.inf
                if gain < self.tol or (gain != gain and math.isinf(value)):
                    history.converged, history.stop = True, "tol"
                    break
                energy.from_stats(sums)
                if monitor.epoch(-value):
                    break
        history.extra["log_likelihood"] = values
        if not history.converged and history.stop == "max_iter" and self.tol > 0 and not self.quiet:
            warnings.warn(
                f"EM stopped after max_iter={self.max_iter} iterations, the last of which gained "
                f"{gain:.3g} nats per row, not less than tol={self.tol:g}; raise max_iter",
                NotConverged,
                stacklevel=2,
            )
        return history

    def _expectation(self, energy: Any, problem: Problem) -> tuple[dict[str, Tensor], float]:
        """Summed statistics, and mean log-likelihood at the parameters they come from."""
        total: dict[str, Tensor] = {}
        for batch, weight in problem.chunks(self.chunk_rows):
            rows: Rows = batch["x"]
            sums, log_p = energy.expected(weight, rows)
            log_p = log_p.double()
            sums["log_p"] = log_p.sum() if weight is None else log_p @ weight.double()
            sums["rows"] = (
                log_p.new_tensor(float(len(log_p))) if weight is None else weight.double().sum()
            )
            for k, v in sums.items():
                total[k] = total[k] + v if k in total else v
        total = current().sum_dict(total)
        value = float(total.pop("log_p") / total.pop("rows"))
        return total, value
