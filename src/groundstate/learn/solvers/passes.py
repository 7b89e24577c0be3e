"""What solvers do around their work: the clock, callbacks, the reason for stopping, the warning."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run


@contextmanager
def at_once(problem: Problem, solver: str, stop: str = "closed form") -> Iterator[History]:
    """One pass that sets θ inside the block; the objective is computed where somebody looks at it.

    Parameters
    ----------
    solver, stop : name and reason of the history
    """
    start = time.perf_counter()
    history = History(converged=True, solver=solver, stop=stop)
    with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
        yield history
        history.seconds.append(time.perf_counter() - start)
        value = math.nan
        if problem.callbacks:
            value = float(problem.objective())
            history.objective.append(value)
        monitor.epoch(value)


def until_optimal(
    problem: Problem,
    solver: str,
    max_iter: int,
    advance: Callable[[int], tuple[float, int, bool]],
    warning: str,
    stop: str = "optimality",
) -> History:
    """Passes until optimal, used up or stopped by a callback.

    Parameters
    ----------
    advance
        At most so many passes, with θ stored after the last; gives the summed objective, how many
        passes they were, and whether they ended at the optimum.
    warning : its message where the passes were too few
    stop : the reason at the optimum
    """
    history = History(solver=solver)
    run = Run(problem, history, max_iter)
    each = 1 if problem.callbacks else max_iter
    with Monitor(problem.callbacks, run) as monitor:
        while run.epoch < max_iter and not history.converged:
            start = time.perf_counter()
            total, done, history.converged = advance(each)
            value = total / problem.total_weight
            history.objective.append(value)
            history.seconds.append(time.perf_counter() - start)
            run.epoch += max(done, 1) - 1
            if monitor.epoch(value):
                return history
    history.stop = stop if history.converged else "max_iter"
    if not history.converged:
        warnings.warn(warning, NotConverged, stacklevel=4)
    return history
