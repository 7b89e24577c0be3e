r"""Several starts of EM as one run: all of them read each tile of rows together."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from groundstate.energy.base import Energy
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.em.em import at_rest
from groundstate.learn.solvers.latent.mixtures.batched import add_together
from groundstate.learn.solvers.latent.mixtures.steps import GaussianM

M = TypeVar("M", bound=GaussianM)
ROWS = 2**20


def twins(first: M, count: int) -> list[M]:
    """Steps that share rows and whitening with the first, each with a mixture of its own."""
    found = [first]
    for _ in range(1, count):
        energy = copy.deepcopy(first.mixture)
        found.append(first.twin(replace(first.problem, energy=energy)))
    return found


def expect(steps: Sequence[GaussianM], T: float, rows: int = ROWS) -> list[float]:
    """One pass over the rows for all mixtures; J of each."""
    for step in steps:
        step.begin(T)
    for batch, weight in steps[0].problem.chunks(rows):
        add_together(steps, batch, weight)
    return [step.close() for step in steps]


def best_of(
    problem: Problem,
    first: GaussianM,
    starts: int,
    begin: Callable[[Problem, int], None],
    max_iter: int,
    tol: float | None,
    temperature: Callable[[int], float],
) -> History:
    """EM from every start, round by round; a start that converged waits. θ is that of the best.

    A callback sees one epoch per round, at the start of lowest J.
    """
    steps = twins(first, starts)
    histories = [History(solver="MixtureEM") for _ in steps]
    for i, step in enumerate(steps):
        begin(step.problem, i)
    live, T = list(range(starts)), temperature(0)
    calm = [False] * starts  # whose next M-step is the last
    record = History(solver="MixtureEM")
    with Monitor(problem.callbacks, Run(problem, record, max_iter)) as monitor:
        J = expect(steps, T)
        for history, value in zip(histories, J, strict=True):
            history.extra["log_likelihood"] = [-value]
        for t in range(1, max_iter + 1):
            begun, cold, T = time.perf_counter(), T, temperature(t)
            for i in live:
                steps[i].finish()
            values = expect([steps[i] for i in live], T)
            took = (time.perf_counter() - begun) / len(live)
            going = []
            for i, value in zip(live, values, strict=True):
                history, before, J[i] = histories[i], J[i], value
                history.objective.append(value)
                history.extra["log_likelihood"].append(-value)
                history.seconds.append(took)
                history.n_iter = t
                last = calm[i]
                calm[i] = last or (tol is not None and cold == T and before - value < tol)
                if calm[i] and (last or t == max_iter or at_rest(before, value)):
                    history.converged, history.stop = True, f"J fell by less than tol={tol}"
                else:
                    going.append(i)
            live = going
            best = min(range(starts), key=J.__getitem__)
            if problem.callbacks:
                _take(problem.energy, steps[best])
                if monitor.epoch(J[best]):
                    histories[best].stop = record.stop or "callback"
                    break
            if not live:
                break
    best = min(range(starts), key=J.__getitem__)
    _take(problem.energy, steps[best])
    histories[best].extra["restarts"] = [-value for value in J]
    return histories[best]


def _take(energy: Energy, step: GaussianM) -> None:
    assert isinstance(energy, GaussianMixtureEnergy)
    energy.load_state_dict(step.mixture.state_dict())
    energy.reseeded = step.mixture.reseeded
