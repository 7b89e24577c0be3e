"""The cross-entropy method as an Optuna sampler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial
from scipy.special import ndtr, ndtri

from groundstate.compute.random import RandomState
from groundstate.errors import DataError
from groundstate.tune.samplers.cube import Axis
from groundstate.tune.samplers.prior import PriorSampler
from groundstate.tune.samplers.rounds import known, risks, slot_of

Floats = NDArray[np.float64]


class CEMSampler(PriorSampler):
    r"""Optuna sampler that refits a product of simple distributions to the best trials of each batch.

    .. math::
        \mu \leftarrow \eta\mu + (1-\eta)\,\mathrm{mean}(\text{elite}), \qquad
        \sigma \leftarrow \max(\sigma_{\min}, \eta\sigma + (1-\eta)\,\mathrm{std}(\text{elite}))

    in the unit cube, with draws from the normal distribution cut off at its faces; of categories it
    is their frequencies that are refitted. The first batch is drawn from the space's prior, and a
    batch looks at earlier batches only, so that any number of workers draws the same trials.

    Parameters
    ----------
    batch : trials between two refits
    elite : share of a batch that counts
    smoothing : share of the old distribution that is kept, η; 1 is random search
    min_std : smallest standard deviation in the cube
    seed : random state
    priors : scipy distributions of settings that are not uniform
    wait : seconds to wait for running trials of earlier batches

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=CEMSampler(batch=10, seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 1) ** 2, n_trials=60)
    >>> abs(study.best_params["x"] - 1) < 0.1
    True
    """

    def __init__(
        self,
        batch: int = 20,
        elite: float = 0.2,
        smoothing: float = 0.3,
        min_std: float = 0.01,
        *,
        seed: RandomState = None,
        priors: Mapping[str, Any] | None = None,
        wait: float = 0.0,
    ) -> None:
        super().__init__(seed, priors)
        if batch < 2 or not 0 < elite <= 1 or not 0 <= smoothing <= 1 or not min_std > 0:
            raise DataError(
                "CEMSampler needs batch >= 2, elite in (0, 1], smoothing in [0, 1] and min_std > 0,"
                f" got {batch}, {elite}, {smoothing}, {min_std}"
            )
        self.batch, self.elite, self.smoothing, self.min_std = batch, elite, smoothing, min_std
        self.wait = wait
        self._batches: tuple[Any, list[list[FrozenTrial]]] | None = None

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        self._single_objective(study)
        slot = slot_of(trial)
        axis = Axis(param_distribution, self.priors.get(param_name))
        if slot < self.batch or self.smoothing == 1:
            return super().sample_independent(study, trial, param_name, param_distribution)
        distribution = self.distribution(study, slot // self.batch, param_name, axis)
        u = float(self.key.fold("draw", param_name, slot).uniform(1)[0])
        if axis.choices is not None:
            at = int(np.searchsorted(np.cumsum(distribution), u * distribution.sum(), side="right"))
            return axis.choices[min(at, axis.levels - 1)]
        mean, std = distribution
        low, high = ndtr(-mean / std), ndtr((1.0 - mean) / std)
        return axis.value(float(mean + std * ndtri(low + u * (high - low))))

    def distribution(self, study: Study, generation: int, name: str, axis: Axis) -> Floats:
        """Mean and standard deviation, or frequencies, after so many batches.  # (2,) or (K,)"""
        nominal = axis.choices is not None
        distribution = (
            np.full(axis.levels, 1.0 / axis.levels) if nominal else np.array([0.5, 12.0**-0.5])
        )
        for best in self._elites(study, generation):
            places = [axis.place(t.params[name]) for t in best if name in t.params]
            if not places:
                continue
            if nominal:
                at = (np.array(places) * axis.levels).astype(np.intp)
                new = np.bincount(at, minlength=axis.levels) / len(at)
            else:
                new = np.array([np.mean(places), np.std(places)])
            distribution = self.smoothing * distribution + (1.0 - self.smoothing) * new
            if not nominal:
                distribution[1] = max(distribution[1], self.min_std)
        return np.asarray(distribution)

    def _elites(self, study: Study, generation: int) -> list[list[FrozenTrial]]:
        """The best trials of every batch before a generation, computed once for each."""
        done = known(study, generation * self.batch, self.wait).done
        tag = (study._study_id, generation, tuple(t.number for t in done))
        if self._batches is None or self._batches[0] != tag:
            rows = []
            for g in range(generation):
                mine = [t for t in done if slot_of(t) // self.batch == g]
                order = np.argsort(risks(study, mine), kind="stable")
                keep = max(1, round(self.elite * self.batch))
                rows.append([mine[i] for i in order[:keep]])
            self._batches = (tag, rows)
        return self._batches[1]
