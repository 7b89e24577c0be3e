"""What one trial does: fits in stages, each ending in a risk that a pruner may look at."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.errors import NotApplicable, failure
from groundstate.evaluate.fitting import random_names, seeds_of
from groundstate.evaluate.splits.population import fit_rows
from groundstate.models.population.many import log_reason
from groundstate.tune.learn import fit, schedule, step
from groundstate.tune.rows import Rows
from groundstate.tune.scoring import risk_of


@dataclass(frozen=True)
class Part:
    """Rows to learn from and rows to judge by; the table that a fold was cut from, and where."""

    train: Rows
    test: Rows
    whole: Rows | None = None
    places: tuple[Any, Any] | None = None


@dataclass
class Run:
    """A trial on its way.

    Attributes
    ----------
    params : settings
    risks : (parts, seeds) table of what the last stage of each found; NaN before
    models : state of fits that go on from checkpoint to checkpoint
    rows : rows learned from so far, the training cost
    """

    params: dict[str, Any]
    risks: Any
    models: dict[tuple[int, int], Any] = field(default_factory=dict)
    rows: float = 0.0
    seconds: float = 0.0
    error: str | None = None
    best: tuple[float, int] | None = None  # lowest risk on the way, and its report

    @property
    def risk(self) -> float:
        """Mean over the parts and seeds that are done."""
        return float(np.nanmean(self.risks))


@dataclass(frozen=True)
class Task:
    """One fit: part, seed, share of the rows, steps."""

    part: int
    seed: int
    fraction: float = 1.0
    steps: int | None = None


@dataclass(frozen=True)
class Plan:
    """How trials are judged.

    Attributes
    ----------
    stages : for each stage the number its report carries and its fits
    """

    estimator: Any
    parts: list[Part]
    seeds: int
    scoring: Any
    key: Key
    stages: list[tuple[int, list[Task]]]

    @classmethod
    def of(
        cls,
        estimator: Any,
        parts: list[Part],
        seeds: int,
        scoring: Any,
        key: Key,
        fidelity: str | None,
        rungs: int,
        checkpoints: int,
    ) -> Plan:
        """Stages by folds, by doubling shares of the rows, or by steps of an iterative model."""
        every = [(p, s) for p in range(len(parts)) for s in range(seeds)]
        stages: list[tuple[int, list[Task]]] = []
        if fidelity == "rows":
            for rung in range(rungs):
                fraction = 2.0 ** (rung - rungs + 1)
                stages.append((2**rung, [Task(p, s, fraction) for p, s in every]))
        elif checkpoints > 1:
            stages = [
                (stop, [Task(p, s, steps=stop) for p, s in every])
                for stop in schedule(estimator, checkpoints)
            ]
        else:
            for p in range(len(parts)):
                stages.append((p + 1, [Task(p, s) for s in range(seeds)]))
        return cls(estimator, parts, seeds, scoring, key, stages)

    def at_once(self) -> list[tuple[int, list[Task]]]:
        """Stages when nobody looks at them: all folds together, the last rung alone."""
        report, last = self.stages[-1]
        if last[0].steps is not None:
            return self.stages
        if len(last) == len(self.parts) * self.seeds:
            return [(report, last)]
        return [(report, [task for _, tasks in self.stages for task in tasks])]

    def run(self, params: Mapping[str, Any]) -> Run:
        """A trial that has not begun."""
        return Run(dict(params), np.full((len(self.parts), self.seeds), np.nan))

    def advance(self, runs: Sequence[Run], tasks: Sequence[Task], n_jobs: int) -> None:
        """Do the tasks of all these runs; a failure on these rows becomes the run's note."""
        from joblib import Parallel, delayed

        try:
            return _population(self, runs, tasks)
        except NotApplicable as reason:
            log_reason(self.estimator, reason)
        except Exception as error:  # `failure` raises what is no failure on these rows
            note = failure(error, type(self.estimator).__name__)
            for run in runs:
                run.error = run.error or note
            return None
        jobs = [(run, task) for run in runs for task in tasks]
        called = (
            delayed(_one)(self, run.params, task, run.models.get((task.part, task.seed)))
            for run, task in jobs
        )
        for (run, task), found in zip(jobs, Parallel(n_jobs=n_jobs)(called)):
            risk, model, rows, seconds, note = found
            run.risks[task.part, task.seed] = risk
            run.rows += rows
            run.seconds += seconds
            run.error = run.error or note
            if task.steps is not None:
                run.models[task.part, task.seed] = model


def _one(
    plan: Plan, params: Mapping[str, Any], task: Task, model: Any
) -> tuple[float, Any, float, float, str | None]:
    import warnings

    from threadpoolctl import threadpool_limits

    part = plan.parts[task.part]
    key = plan.key.fold("fit", task.seed)  # the same for all settings: they are compared in pairs
    start = time.perf_counter()
    # sums in BLAS depend on its threads: one thread each, or workers would change the last bits
    with warnings.catch_warnings(), threadpool_limits(1), threads(1):
        warnings.simplefilter("ignore")
        try:
            train = part.train.share(task.fraction, plan.key.fold("rows"))
            cost = float(len(train))
            if task.steps is None:
                model = fit(plan.estimator, params, train, key)
            else:
                if model is None:
                    from sklearn.base import clone

                    model = clone(plan.estimator).set_params(**dict(params))
                before = getattr(model, "_groundstate_steps", 0)
                model = step(model, train, task.steps, key, before)
                model._groundstate_steps = task.steps
                cost *= (task.steps - before) / plan.stages[-1][0]
            risk = risk_of(model, part.test, plan.scoring)
            if not np.isfinite(risk):
                raise ValueError(f"the score is {-risk}")
        except Exception as error:  # `failure` raises what is no failure on these rows
            note = failure(error, type(plan.estimator).__name__)
            return float("nan"), None, 0.0, time.perf_counter() - start, note
    return risk, model if task.steps is not None else None, cost, time.perf_counter() - start, None


def _population(plan: Plan, runs: Sequence[Run], tasks: Sequence[Task]) -> None:
    """All settings, folds and seeds as one program; ``NotApplicable`` where there is none."""
    import warnings

    from threadpoolctl import threadpool_limits

    jobs = [(run, task) for run in runs for task in tasks]
    whole = plan.parts[tasks[0].part].whole
    if len(jobs) < 2 or whole is None:
        raise NotApplicable("one fit is no population, and members share the rows of one table")
    if any(task.fraction < 1 or task.steps for task in tasks):
        raise NotApplicable("fits in stages go on one by one")
    names = random_names(plan.estimator, unset=True)
    rows, settings = [], []
    for run, task in jobs:
        part = plan.parts[task.part]
        if part.whole is not whole or part.places is None:
            raise NotApplicable("the parts are not folds of one table")
        rows.append(part.places[0])
        settings.append({**seeds_of(names, plan.key.fold("fit", task.seed)), **run.params})
    start = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1), threads(1):
        warnings.simplefilter("ignore")
        models = fit_rows(plan.estimator, whole.X, whole.y, rows, settings, whole.weight)
        found = [
            risk_of(model, plan.parts[task.part].test, plan.scoring)
            for model, (_, task) in zip(models, jobs, strict=True)
        ]
    seconds = (time.perf_counter() - start) / len(jobs)
    for (run, task), risk in zip(jobs, found, strict=True):
        run.risks[task.part, task.seed] = risk
        run.rows += len(plan.parts[task.part].train)
        run.seconds += seconds
        if not np.isfinite(risk):
            run.error = run.error or f"ValueError: the score is {-risk}"
