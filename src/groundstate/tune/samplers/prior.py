"""Draws from the prior of a space, the same whatever is running beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from groundstate.compute.random import Key, RandomState
from groundstate.errors import Unsupported
from groundstate.tune.samplers.cube import Axis
from groundstate.tune.samplers.rounds import slot_of


class PriorSampler(BaseSampler):
    r"""Optuna sampler that draws every setting from its prior, :math:`\lambda \sim p_0`.

    The draw depends on the seed, the trial's number and the setting's name alone, so that any
    number of workers and any interruption give the same trials.

    Parameters
    ----------
    seed : random state
    priors : scipy distributions of settings that are not uniform
    stratify : so many first trials are a Latin hypercube: each setting falls once into each of
        equal shares of its prior

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=PriorSampler(seed=0, stratify=4))
    >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 4), n_trials=4)
    >>> sorted(int(t.params["x"]) for t in study.trials)
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        seed: RandomState = None,
        priors: Mapping[str, Any] | None = None,
        stratify: int = 0,
    ) -> None:
        self.key = Key.of(seed)
        self.priors = dict(priors or {})
        self.stratify = stratify

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        slot = slot_of(trial)
        u = float(self.key.fold("prior", param_name, slot).uniform(1)[0])
        if slot < self.stratify:
            order = np.argsort(self.key.fold("order", param_name).uniform(self.stratify))
            u = (float(order[slot]) + u) / self.stratify
        return Axis(param_distribution, self.priors.get(param_name)).value(u)

    def reseed_rng(self) -> None:
        """Nothing to do: there is no shared stream."""

    def _single_objective(self, study: Study) -> None:
        if len(study.directions) > 1:
            raise Unsupported(
                f"{type(self).__name__} lowers one risk, the study has {len(study.directions)} "
                "objectives; give them one sum, or use optuna's NSGAIISampler"
            )
