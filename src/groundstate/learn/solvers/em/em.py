r"""Expectation maximisation: complete the data, fit the completed data, repeat."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem, Solver
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.missing import is_missing
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.em.steps import (
    ClosedM,
    InnerM,
    MStep,
    closed_reason,
    completion_of,
    names_of,
)
from groundstate.learn.train.stochastic import Stochastic
from groundstate.registry import solvers

if TYPE_CHECKING:
    from groundstate.learn.solvers.em.online import Move

Schedule = Callable[[int], float]
EPS = 2.0**-50


@solvers.register(
    formula=r"q_i = e^{-e(x_i,\cdot)/T}/Z,\quad \theta \leftarrow \arg\min\sum_i E_{q_i}[e]",
    make=lambda energy: EM(),
)
@dataclass(frozen=True)
class EM:
    r"""Lower :math:`J = \frac1{\sum w}\sum_i w_i\bigl(E_{q_i}[e(x_i,z)] - T\,H(q_i)\bigr) + \log Z`
    in turn over q and θ.

    E: :math:`q_i = e^{-e(x_i,z)/T}/Z_i`, which makes J the free energy of the data. M: θ from the
    summed statistics :math:`\sum_i w_i E_{q_i}[t(x_i, z)]`, or by an inner solver on
    :math:`E_{q_i}[e]` (generalised EM). Neither half can raise J. Statistics are all that is summed
    over chunks and shards.

    An energy joins by offering ``stats(weights, x=..., z=distribution)`` and ``from_stats(sums)``.
    ``z`` is a torch ``Distribution`` with batch shape ``(B,)``: ``Categorical`` for a ``Finite``
    variable, the declared conditional otherwise. At T = 0 it is the tensor of minimisers, as if z
    were observed.

    A rule with ``latent=Variational(family)`` or ``PerInstance(family)`` restricts q to a family
    (variational EM): J is then a bound that falls, while the likelihood itself need not rise. It is
    EM where the family holds the posterior.

    Parameters
    ----------
    max_iter : iterations; passes over the data where ``batch_size`` is set
    tol : stop when J fell by less than this, one M-step later: its statistics are there already.
        None runs ``max_iter`` iterations
    n_init : runs; the first starts from θ as it stands, the others from
        ``energy.reset(key, data, weight)``; the best is kept
    T : weight of the entropy. None takes the rule's temperature, 0 where it minimises latents
        (hard EM); a function of the iteration anneals
    batch_size : rows (units of weight) of a mini-batch; None uses all rows. The statistics of a
        unit of weight move by :math:`s \leftarrow (1-\rho_t)s + \rho_t s_{batch}`; not monotone
    step : :math:`\rho_t` as a function of the finished mini-batches, by default
        :math:`(t+2)^{-0.7}`; the first mini-batch always counts whole
    inner : solver of the M-step, for energies without statistics, such as ``LBFGS(max_iter=10)``.
        With ``batch_size`` one gradient step follows each mini-batch, which is ``Stochastic``
        because :math:`\nabla F = E_q[\nabla e]`
    chunk_rows : rows completed at once
    audit : also record J between the two halves, at the price of a second pass

    Notes
    -----
    ``History.objective`` is J after each iteration. ``History.extra`` holds ``"log_likelihood"``,
    −J with q at its best (a lower bound of it where q is restricted to a family), from the start
    on (one entry more), and with ``audit`` ``"bound"``, −J
    after each M-step with q from before it, so that
    ``log_likelihood[t] <= bound[t] <= log_likelihood[t + 1]``.

    Examples
    --------
    >>> from groundstate.energy import CentroidEnergy
    >>> from groundstate.learn import NLL, fit
    >>> energy = CentroidEnergy(2, 1).double()
    >>> _ = energy.mu.data.copy_(torch.tensor([[-1.0], [1.0]]))
    >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [3.0]], dtype=torch.float64)
    >>> history = fit(energy, {"x": x}, NLL(), EM(tol=1e-9))
    >>> energy.mu.detach().flatten().round(decimals=3).tolist()
    [-1.397, 2.028]
    """

    max_iter: int = 100
    tol: float | None = 1e-3
    n_init: int = 1
    T: float | Schedule | None = None
    batch_size: int | None = None
    step: Schedule | None = None
    inner: Solver | None = None
    chunk_rows: int = 2**14
    audit: bool = False

    def __post_init__(self) -> None:
        for name in ("max_iter", "n_init", "chunk_rows", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if isinstance(self.T, int | float) and not self.T >= 0:
            raise ValueError(f"temperature must be in [0, inf], got T={self.T}")

    # --- can it run? ---------------------------------------------------------------------

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        name = type(energy).__name__
        if not isinstance(rule, Naive | SoftMin):
            return f"EM lowers the free energy of Naive, SoftMin or NLL, not {type(rule).__name__}"
        if not problem.is_resident and not hasattr(problem.data, "__len__"):
            return "the data is a stream that can be read once; EM reads it in every iteration"
        latents = rule.latents(energy, names_of(problem))
        if len(latents) != 1:
            what = ", ".join(latents) if latents else "nothing"
            return f"EM completes exactly one hidden variable, and here {what} is hidden"
        if isinstance(rule, SoftMin) and rule.latent == "minimise":
            return "the contrast with minimised latents depends on θ; use Naive(latent='minimise')"
        if isinstance(rule, SoftMin) and rule.T == 0:
            return "SoftMin at T=0 has a kinked contrast; use Naive(latent='minimise') or EM(T=0)"
        if problem.is_resident and "y" in problem.names and _any_missing(problem.resident["y"]):
            return f"some y are unknown, so that {latents[0]!r} is not all that is hidden"
        reason = completion_of(problem, latents[0]).reason_against(self.temperature(problem, 0))
        if reason is None and self.inner is None:
            reason = closed_reason(problem, latents[0])
        if reason is not None:
            return reason
        if self.n_init > 1 and not callable(getattr(energy, "reset", None)):
            return f"n_init={self.n_init} needs {name}.reset(key, data, weight) for new starts"
        if self.inner is not None and not problem.is_resident and self.batch_size is None:
            return "an inner solver needs all rows at once, and the data is a stream"
        if self.batch_size is not None and self.inner is not None:
            if not isinstance(self.inner, Stochastic):
                return "with batch_size the inner solver takes single steps; pass Stochastic(...)"
            return self.inner.reason_against(problem)
        return None

    def temperature(self, problem: Problem, t: int) -> float:
        """The weight of the entropy in iteration ``t``."""
        if self.T is None:
            rule = problem.rule
            return 0.0 if rule.latent == "minimise" else float(getattr(rule, "temperature", 1.0))
        return float(self.T(t) if callable(self.T) else self.T)

    # --- running -------------------------------------------------------------------------

    def run(self, problem: Problem) -> History:
        if self.batch_size is not None:
            if self.inner is not None:
                assert isinstance(self.inner, Stochastic)
                return replace(self.inner, batch_size=self.batch_size).run(problem)
            from groundstate.learn.solvers.em.online import run_online

            return run_online(self, problem)
        history = History(solver="EM")
        run = Run(problem, history, self.max_iter * self.n_init)
        if self.n_init == 1:
            place = _Place(run)
            run.state, run.restore = place.state, place.restore
        with Monitor(problem.callbacks, run) as monitor:
            best = self._one(problem, monitor, history)
            latest = best
            for i in range(1, self.n_init):
                if latest.stop and not latest.converged:
                    break  # a callback stops
                kept = {k: v.clone() for k, v in problem.energy.state_dict().items()}
                data = problem.resident if problem.is_resident else problem.data
                reset: Any = problem.energy.reset
                reset(problem.key.fold("restart", i), data, problem.sample_weight)
                latest = self._one(problem, monitor, History(solver="EM"))
                if latest.objective[-1] < best.objective[-1]:
                    best = latest
                else:
                    problem.energy.load_state_dict(kept)
        self._say(best)
        return best

    def _one(self, problem: Problem, monitor: Monitor, history: History) -> History:
        """EM from θ as it stands."""
        run = monitor.run
        m = self.m_step(problem)
        t = run.epoch if self.n_init == 1 else 0
        T = self.temperature(problem, t)
        start = time.perf_counter()
        J, held = self._e_step(m, T)
        gained = history.extra.setdefault("log_likelihood", [])
        gained.append(-J)
        calm = self.tol is not None and t > 0 and gained[-1] - gained[-2] < self.tol
        while t < self.max_iter:
            m.finish()
            if held is not None:
                bound = -m.between(held, self.chunk_rows)
                history.extra.setdefault("bound", []).append(bound)
            t += 1
            before, cold, T = J, T, self.temperature(problem, t)
            J, held = self._e_step(m, T)
            history.objective.append(J)
            history.extra["log_likelihood"].append(-J)
            history.seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
            if monitor.epoch(J):
                history.stop = run.history.stop
                break
            done = calm
            calm = done or (self.tol is not None and cold == T and before - J < self.tol)
            if calm and (done or at_rest(before, J)):
                break
        if calm and not history.stop:
            history.converged = True
            history.stop = f"J fell by less than tol={self.tol}"
        history.n_iter = t
        return history

    def m_step(self, problem: Problem) -> MStep:
        """What collects completed rows and moves θ."""
        (latent,) = problem.rule.latents(problem.energy, names_of(problem))
        if self.inner is not None:
            return InnerM(problem, latent, self.inner)
        return ClosedM(problem, latent)

    def online_move(self, problem: Problem, m: MStep) -> Move:
        """How a mini-batch moves θ."""
        from groundstate.learn.solvers.em.online import averaged

        return averaged(self, problem, m)

    def _e_step(self, m: MStep, T: float) -> tuple[float, list[tuple[Tensor, Tensor]] | None]:
        """One pass over the data: J with q at its best; q itself is kept only for the audit."""
        held: list[tuple[Tensor, Tensor]] | None = [] if self.audit else None
        m.begin(T)
        for batch, weight in m.problem.chunks(self.chunk_rows):
            m.add(batch, weight)
            if held is not None:
                with torch.no_grad():
                    held.append(m.complete.held(batch, T))
        return m.close(), held

    def _say(self, history: History) -> None:
        history.stop = history.stop or "max_iter"
        if history.stop == "max_iter" and self.tol and current().rank == 0:
            warnings.warn(
                f"EM stopped after {self.max_iter} iterations while J still fell by more than "
                f"tol={self.tol}; raise max_iter, or pass tol=None to run a fixed number",
                NotConverged,
                stacklevel=4,
            )


def at_rest(before: float, J: float) -> bool:
    """Whether an iteration gained nothing that rounding could tell."""
    return before - J <= EPS * abs(J)


def _any_missing(y: Tensor) -> bool:
    return bool(is_missing(y).any())


@dataclass
class _Place:
    """What a run of EM needs to go on to the same bits: θ and the record so far."""

    run: Run

    def state(self) -> dict[str, Any]:
        history = self.run.history
        return {
            "energy": self.run.energy.state_dict(),
            "epoch": self.run.epoch,
            "history": [history.objective, history.seconds],
            "extra": history.extra,
        }

    def restore(self, state: dict[str, Any]) -> None:
        run = self.run
        run.energy.load_state_dict(state["energy"])
        run.epoch = run.history.n_iter = state["epoch"]
        run.history.objective, run.history.seconds = map(list, state["history"])
        extra = {k: list(v) for k, v in state["extra"].items()}
        extra["log_likelihood"].pop()  # taken again at the restored θ
        run.history.extra = extra
