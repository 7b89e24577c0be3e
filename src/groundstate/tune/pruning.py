"""Pruners by name, and the view of a study that makes them the same for any number of workers."""

from __future__ import annotations

from typing import Any

from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    SuccessiveHalvingPruner,
)
from optuna.study import Study
from optuna.trial import FrozenTrial

from groundstate.errors import DataError
from groundstate.tune.samplers.rounds import slot_of

NAMES = ("median", "halving", "hyperband")


def pruner_of(pruner: Any, first: int, last: int) -> BasePruner:
    """Optuna's pruner of a name, for reports from ``first`` to ``last``, or the one passed."""
    if isinstance(pruner, BasePruner):
        return pruner
    if pruner is None:
        return NopPruner()
    if pruner == "median":
        return MedianPruner(n_startup_trials=5)
    if pruner == "halving":
        return SuccessiveHalvingPruner(min_resource=first, reduction_factor=4)
    if pruner == "hyperband":
        return HyperbandPruner(min_resource=first, max_resource=last, reduction_factor=4)
    raise DataError(f"pruner is None, one of {', '.join(NAMES)} or optuna's, got {pruner!r}")


class EarlierRounds:
    """A study that shows a pruner the trials below a place and the one in question alone."""

    def __init__(self, study: Study, before: int, number: int) -> None:
        self._study, self._before, self._number = study, before, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def get_trials(self, deepcopy: bool = True, states: Any = None) -> list[FrozenTrial]:
        """As of the study, without what runs beside."""
        return self._kept(self._study.get_trials(deepcopy=deepcopy, states=states))

    def _get_trials(
        self, deepcopy: bool = True, states: Any = None, use_cache: bool = False
    ) -> list[FrozenTrial]:
        found = self._study._get_trials(deepcopy=deepcopy, states=states, use_cache=use_cache)
        return self._kept(found)

    @property
    def trials(self) -> list[FrozenTrial]:
        """All that are shown."""
        return self.get_trials()

    def _kept(self, trials: list[FrozenTrial]) -> list[FrozenTrial]:
        return [t for t in trials if slot_of(t) < self._before or t.number == self._number]


def should_prune(study: Study, pruner: BasePruner, number: int, before: int) -> bool:
    """Whether the trial is not worth going on with, judged by the trials in places before."""
    if isinstance(pruner, NopPruner):
        return False
    trial = study._storage.get_trial(study._storage.get_trial_id_from_study_id_trial_number(
        study._study_id, number
    ))  # fmt: skip
    view: Any = EarlierRounds(study, before, number)
    return bool(pruner.prune(view, trial))
