"""Rounds of trials on an Optuna study: ask, fit in stages, prune, tell."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import optuna
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.tune.pruning import pruner_of, should_prune
from groundstate.tune.samplers.cem import CEMSampler
from groundstate.tune.samplers.prior import PriorSampler
from groundstate.tune.samplers.rounds import SLOT, slot_of
from groundstate.tune.samplers.smbo import SMBOSampler
from groundstate.tune.space import Space
from groundstate.tune.storing import open_study, spoken
from groundstate.tune.trials import Plan, Run

_WORKER = "groundstate:worker"
_LONG = 24 * 3600.0  # a worker of a shared study waits so long for its fellows
STARTUP, ELITES = 10, 20  # trials before the surrogate begins; trials of one generation
SAMPLERS = ("smbo", "cem", "random", "qmc", "grid", "tpe", "gp", "gradient")


def _quasi(seed: int) -> BaseSampler:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.QMCSampler(seed=seed, warn_asynchronous_seeding=False)


class _Grid(optuna.samplers.GridSampler):
    """Optuna's grid, which would stop a loop of Optuna's; here the driver counts."""

    def after_trial(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to stop."""


class Driver:
    """Runs the trials of one ``Tune``."""

    def __init__(self, tune: Any, study: Study, space: Space, plan: Plan, key: Key) -> None:
        self.tune, self.study, self.space, self.plan, self.key = tune, study, space, plan, key
        self.pruner = pruner_of(tune.pruner, plan.stages[0][0], plan.stages[-1][0])
        self.stages = plan.stages
        if isinstance(self.pruner, optuna.pruners.NopPruner):
            self.stages = plan.at_once()
        self.total = int(tune.n_trials)
        if tune.sampler == "grid":
            self.total = min(self.total, int(space.size)) if space.size < 1e9 else self.total

    def run(self) -> None:
        """Rounds until all trials are done or the time is over."""
        deadline = None if self.tune.timeout is None else time.monotonic() + self.tune.timeout
        with spoken(self.study._storage):
            self._give_up_lost()
            while deadline is None or time.monotonic() < deadline:
                slots = self._next()
                if not slots:
                    break
                self._round(slots)

    def _next(self) -> list[int]:
        """Places of the next round: those without a trial, and those whose trial was lost."""
        trials = self.study._storage.get_all_trials(self.study._study_id, deepcopy=False)
        taken = {slot_of(trial) for trial in trials if not _is_lost(trial)}
        missing = (slot for slot in range(self.total) if slot not in taken)
        first = next(missing, None)
        if first is None:
            return []
        if self.tune.shared:
            return [first]
        end = self._bounds(first)[1]
        return [slot for slot in range(first, min(end, self.total)) if slot not in taken]

    def _bounds(self, slot: int) -> tuple[int, int]:
        """Where the round of a place begins and ends; it never straddles one of the sampler's."""
        batch = int(self.tune.batch)
        prunes = not isinstance(self.pruner, optuna.pruners.NopPruner)
        startup = STARTUP if self.tune.sampler == "smbo" or prunes else 0
        if slot < startup:
            if prunes:  # the first ones have nobody to be compared with but each other
                return 0, startup
            start = slot // batch * batch
            return start, min(start + batch, startup)
        start = startup + (slot - startup) // batch * batch
        end = start + batch
        if self.tune.sampler == "cem":
            edge = slot // ELITES * ELITES
            start, end = max(start, edge), min(end, edge + ELITES)
        return start, end

    def _round(self, slots: list[int]) -> None:
        asked = [trial for slot in slots if (trial := self._ask(slot)) is not None]
        runs: list[tuple[Trial, Run]] = []
        for trial in asked:
            if slot_of_live(trial) >= self.total:  # another worker was quicker
                self.study.tell(trial, state=TrialState.FAIL)
                continue
            trial.set_user_attr(_WORKER, f"{socket.gethostname()}:{os.getpid()}")
            runs.append((trial, self.plan.run(self.space.suggest(trial))))
        # a round goes from stage to stage together; processes that share a study do not
        before = self._bounds(min(slots))[0] if self.tune.shared else max(slots) + 1
        for report, tasks in self.stages:
            alive = [(trial, run) for trial, run in runs if run.error is None]
            if not alive:
                break
            self.plan.advance([run for _, run in alive], tasks, int(self.tune.n_jobs))
            last = report == self.stages[-1][0]
            alive = [(trial, run) for trial, run in alive if run.error is None]
            for trial, run in alive:
                self._report(trial, run, report)
                run.best = _best(run, report)
            # the best first: those behind are judged beside them, whichever order they came in
            for trial, run in sorted(alive, key=lambda row: row[1].risk):
                if not last and should_prune(self.study, self.pruner, trial.number, before):
                    self._tell(trial, run, TrialState.PRUNED)
                    runs = [row for row in runs if row[0] is not trial]
        for trial, run in runs:
            self._tell(trial, run, TrialState.FAIL if run.error else TrialState.COMPLETE)

    def _report(self, trial: Trial, run: Run, report: int) -> None:
        """Intermediate values: risks of stages, or means over the folds so far."""
        if len(self.stages) > 1:
            trial.report(run.risk, report)
        elif len(self.plan.stages) > 1 and len(run.risks) == len(self.plan.stages):
            for fold in range(len(run.risks)):
                trial.report(float(run.risks[: fold + 1].mean()), fold + 1)

    def _ask(self, slot: int) -> Trial | None:
        """A new trial in a place; None when another worker has taken it since."""
        self.study.sampler = self._sampler(slot)
        known = self.study._storage.get_all_trials(self.study._study_id, deepcopy=False)
        if any(slot_of(trial) == slot and not _is_lost(trial) for trial in known):
            return None
        if len(known) != slot:  # the number will not be the place
            self.study.enqueue_trial({}, user_attrs={SLOT: slot})
        return self.study.ask()

    def _tell(self, trial: Trial, run: Run, state: TrialState) -> None:
        trial.set_user_attr("rows", run.rows)
        trial.set_user_attr("seconds", run.seconds)
        if run.error is not None:
            trial.set_user_attr("error", run.error)
            self.study.tell(trial, state=TrialState.FAIL)
            return
        trial.set_user_attr("risks", [[float(r) for r in row] for row in run.risks])
        if state == TrialState.PRUNED:
            self.study.tell(trial, state=state)
            return
        value = run.risk
        if run.best is not None and self.tune.checkpoints > 1:
            value, steps = run.best
            trial.set_user_attr("steps", steps)
        self.study.tell(trial, value)

    def _sampler(self, slot: int) -> BaseSampler:
        """The sampler for one place, seeded by the place where it draws from a stream."""
        kind = self.tune.sampler
        if isinstance(kind, BaseSampler):
            return kind
        if kind == "smbo" and self.total < 10:
            kind = "random"
        seed = int(self.key.fold("sampler", slot).words(1)[0] % (2**31 - 1))
        always = int(self.key.fold("sampler").words(1)[0] % (2**31 - 1))
        wait, priors = (_LONG if self.tune.shared else 0.0), self.space.priors
        own = self.key.fold("settings")
        if kind in ("smbo", "cem") and self._own is None:
            if kind == "smbo":
                self._own = SMBOSampler(
                    n_startup=STARTUP,
                    batch=int(self.tune.batch),
                    wait=wait,
                    seed=own,
                    priors=priors,
                )
            else:
                self._own = CEMSampler(ELITES, seed=own, priors=priors, wait=wait)
        if kind in ("smbo", "cem"):
            assert self._own is not None
            return self._own
        if kind == "random":
            return PriorSampler(own, priors)
        if kind == "grid":
            return _Grid(self.space.labels(), seed=always)
        made = {
            "qmc": lambda: _quasi(always),
            "tpe": lambda: optuna.samplers.TPESampler(seed=seed),
            "gp": lambda: optuna.samplers.GPSampler(seed=seed),
        }
        if kind not in made:
            raise DataError(
                f"sampler is one of {', '.join(SAMPLERS)} or an Optuna sampler, got {kind!r}"
            )
        return made[kind]()

    _own: BaseSampler | None = None

    def _give_up_lost(self) -> None:
        """Trials whose process has ended are failed, so that their places are tried again."""
        host = socket.gethostname()
        for trial in self.study._storage.get_all_trials(self.study._study_id, deepcopy=False):
            if trial.state != TrialState.RUNNING:
                continue
            worker = str(trial.user_attrs.get(_WORKER, ""))
            name, _, number = worker.rpartition(":")
            gone = name == host and number.isdigit() and not _alive(int(number))
            if gone or (not self.tune.shared and (not worker or name == host)):
                self.study._storage.set_trial_user_attr(trial._trial_id, "lost", True)
                self.study.tell(trial.number, state=TrialState.FAIL)


def slot_of_live(trial: Trial) -> int:
    """The place of a trial that is running."""
    return int(trial.user_attrs.get(SLOT, trial.number))


def _is_lost(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.FAIL and bool(trial.user_attrs.get("lost"))


def _best(run: Run, report: int) -> tuple[float, int]:
    """Lowest risk on the way and where it was."""
    now = (run.risk, report)
    return now if run.best is None else min(run.best, now)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


__all__ = ["Driver", "open_study"]
