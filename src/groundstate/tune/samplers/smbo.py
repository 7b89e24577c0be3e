"""Sequential model-based optimisation as an Optuna sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.search_space import intersection_search_space
from optuna.study import Study
from optuna.trial import FrozenTrial

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.tune.samplers.acquisition import candidates, climb, tops
from groundstate.tune.samplers.cube import Cube
from groundstate.tune.samplers.improvement import log_expected_improvement, sampled_improvement
from groundstate.tune.samplers.prior import PriorSampler
from groundstate.tune.samplers.process import Process, fit_process
from groundstate.tune.samplers.proposal import Proposal
from groundstate.tune.samplers.rounds import Known, covered, known, risks, slot_of, standardise
from groundstate.tune.samplers.surrogates import Ensemble, Forest, Surrogate

Floats = NDArray[np.float64]
_THETA = "groundstate:theta"
_MOST = 500  # trials beyond which a Gaussian process gives way to a forest
_EAGER = 50  # up to here lengths and noise are learned before every proposal, then every fifth
_HILLS = 5
_QUANTILES = 64


class SMBOSampler(PriorSampler):
    r"""Optuna sampler that tries the settings of largest expected improvement.

    .. math::
        q(\lambda) \propto p_0(\lambda)\exp\bigl(\beta\,\mathrm{EI}(\lambda)/\max\mathrm{EI}
        - \alpha\, d(\lambda, \lambda_{\mathrm{best}})\bigr), \qquad
        \mathrm{EI} = \mathbb E\max(0, r_{\mathrm{best}} - r(\lambda)) .

    A surrogate predicts the risk r of every setting from the trials so far, standardised with the
    worse half drawn in (:func:`groundstate.tune.samplers.rounds.standardise`); candidates are spread over the
    space and around the best, the tops of EI are climbed, and one candidate is drawn.

    Parameters
    ----------
    surrogate : ``"gp"`` (Matérn-5/2 Gaussian process, a forest beyond 500 trials), ``"forest"``
        (bootstrapped extra-trees) or ``"ensemble"`` (bootstrapped networks with squared energy)
    beta : inverse temperature; 0 draws from the prior, inf takes the largest EI
    alpha : pull towards the best so far
    n_startup : trials of a Latin hypercube before the surrogate begins
    n_candidates : settings compared at each proposal, besides the climbed ones
    ei : ``"gaussian"``, ``"sampled"`` (mean over members or draws) or ``"auto"``
    incumbent : ``"observed"`` lowest risk, or ``"model"`` lowest predicted mean, for noisy risks
    pending : ``"mean"`` lets running trials enter with their predicted mean, ``"ignore"`` not
    ei_scale : ``"max"`` or ``"raw"``, see :class:`groundstate.tune.Proposal`
    batch : trials of a round, which depend on earlier rounds only
    wait : seconds to wait for running trials of earlier rounds. With it, parallel workers on one
        study give the same settings as one worker.
    seed : random state
    priors : scipy distributions of settings that are not uniform; see :class:`Space`

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=SMBOSampler(seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 1) ** 2, n_trials=20)
    >>> abs(study.best_params["x"] - 1) < 0.05
    True
    """

    def __init__(
        self,
        surrogate: Literal["gp", "forest", "ensemble"] = "gp",
        beta: float = 30.0,
        alpha: float = 0.0,
        n_startup: int = 10,
        n_candidates: int = 768,
        ei: Literal["auto", "gaussian", "sampled"] = "auto",
        incumbent: Literal["observed", "model"] = "observed",
        pending: Literal["mean", "ignore"] = "mean",
        *,
        ei_scale: Literal["max", "raw"] = "max",
        batch: int = 1,
        wait: float = 0.0,
        seed: RandomState = None,
        priors: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(seed, priors, stratify=n_startup)
        for name, value, allowed in (
            ("surrogate", surrogate, ("gp", "forest", "ensemble")),
            ("ei", ei, ("auto", "gaussian", "sampled")),
            ("incumbent", incumbent, ("observed", "model")),
            ("pending", pending, ("mean", "ignore")),
        ):
            if value not in allowed:
                raise DataError(f"{name} is one of {', '.join(allowed)}, got {value!r}")
        if n_startup < 1 or n_candidates < 8 or batch < 1:
            raise DataError(
                "n_startup and batch are at least 1 and n_candidates at least 8, got "
                f"{n_startup}, {batch} and {n_candidates}"
            )
        Proposal([0.0], beta, alpha, ei_scale=ei_scale)  # says what is wrong with them
        self.surrogate, self.beta, self.alpha = surrogate, beta, alpha
        self.n_startup, self.n_candidates, self.ei = n_startup, n_candidates, ei
        self.incumbent, self.pending, self.ei_scale = incumbent, pending, ei_scale
        self.batch, self.wait = batch, wait
        self._round: tuple[Any, list[Floats], list[float] | None] | None = None

    def _first(self, slot: int) -> int:
        """Where the round of a place begins."""
        return self.n_startup + (slot - self.n_startup) // self.batch * self.batch

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        self._single_objective(study)
        slot = slot_of(trial)
        if slot < self.n_startup or self.beta == 0:
            return {}
        seen = known(study, self._first(slot), self.wait)
        space = intersection_search_space(seen.done, include_pruned=True)
        return {name: space[name] for name in sorted(space) if not space[name].single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        slot = slot_of(trial)
        first = self._first(slot)
        seen = known(study, first, self.wait)
        cube = Cube(search_space, self.priors)
        numbers = [tuple(t.number for t in trials) for trials in (seen.done, seen.pending)]
        tag = (study._study_id, first, *numbers, tuple(search_space))
        if self._round is None or self._round[0] != tag:
            self._round = (tag, [], None)
        _, points, theta = self._round
        if len(points) <= slot - first:
            points, theta = self._propose(study, cube, seen, first, slot - first + 1)
            self._round = (tag, points, theta)
        if theta is not None:
            study._storage.set_trial_system_attr(trial._trial_id, _THETA, theta)
        return cube.setting(points[slot - first])

    def _propose(
        self, study: Study, cube: Cube, seen: Known, first: int, k: int
    ) -> tuple[list[Floats], list[float] | None]:
        """The first k points of a round, each knowing the ones before it."""
        space = {name: axis.distribution for name, axis in zip(cube.names, cube.axes)}
        done = covered(seen.done, space)
        y = standardise(risks(study, done))
        U = np.stack([cube.point(trial.params) for trial in done])  # (n, d)
        model, theta = self._fit(cube, U, y, seen, first)
        taken = U
        if self.pending == "mean":
            for trial in covered(seen.pending, space):
                u = cube.point(trial.params)
                model = model.append(cube.embed(u[None])[0])
                taken = np.concatenate([taken, u[None]])
        best = U[int(np.argmin(y))]
        if self.incumbent == "model":
            low = float(model.predict(cube.embed(U))[0].min())
        else:
            low = float(y.min())
        points: list[Floats] = []
        for i in range(k):
            u = self._next(cube, model, best, low, taken, self.key.fold("trial", first, i))
            points.append(u)
            if i + 1 < k:
                model = model.append(cube.embed(u[None])[0])
                taken = np.concatenate([taken, u[None]])
        return points, theta

    def _fit(
        self, cube: Cube, U: Floats, y: Floats, seen: Known, first: int
    ) -> tuple[Surrogate, list[float] | None]:
        Z = cube.embed(U)
        key = self.key.fold("surrogate", first)
        if self.surrogate == "ensemble":
            return Ensemble(Z, y, key), None
        if self.surrogate == "forest" or len(y) > _MOST:
            return Forest(Z, y, key), None
        start = None
        for trial in reversed(seen.done):  # of the last round that learned one
            stored = trial.system_attrs.get(_THETA)
            if stored is not None and len(stored) == len(cube) + 2:
                start = np.asarray(stored, np.float64)
                break
        fixed = start is not None and len(y) > _EAGER and (first - self.n_startup) % 5 >= self.batch
        process = fit_process(Z, y, cube.groups, start, fixed=fixed)
        return process, process.theta.tolist()

    def _next(
        self, cube: Cube, model: Surrogate, best: Floats, low: float, taken: Floats, key: Key
    ) -> Floats:
        """Candidates, their EI, one draw.  # (d,)"""
        U = candidates(cube, best, self.n_candidates, key)
        logs = self._log_ei(cube, model, U, low)
        logs[_repeats(cube, U, taken)] = -np.inf
        if isinstance(model, Process):
            starts = np.concatenate([tops(U, logs, _HILLS), best[None]])
            peaks = climb(model, cube, starts, low)
            more = self._log_ei(cube, model, peaks, low)
            more[_repeats(cube, peaks, taken)] = -np.inf
            U, logs = np.concatenate([U, peaks]), np.concatenate([logs, more])
        if not np.isfinite(logs).any():  # every setting was tried: the prior decides
            logs = np.zeros(len(logs))
        distance = np.linalg.norm(U - best, axis=1) / math.sqrt(len(cube))
        prior = np.isfinite(logs).astype(np.float64)
        proposal = Proposal(logs, self.beta, self.alpha, distance, prior, self.ei_scale)
        return np.asarray(U[proposal.draw(key.fold("draw"))])

    def _log_ei(self, cube: Cube, model: Surrogate, U: Floats, low: float) -> Floats:
        Z = cube.embed(U)
        many = self.ei == "sampled" or (self.ei == "auto" and isinstance(model, Ensemble))
        if not many:
            return log_expected_improvement(*model.predict(Z), low)
        if isinstance(model, Process):
            from scipy.special import ndtri

            mean, std = model.predict(Z)
            z = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
            draws = mean + std * z[:, None]
        else:
            assert isinstance(model, (Forest, Ensemble))
            draws = model.draws(Z)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(sampled_improvement(draws, low), 1e-300))


def _repeats(cube: Cube, U: Floats, taken: Floats) -> NDArray[np.bool_]:
    """Candidates that were tried before, where all settings are steps or categories."""
    if not cube.discrete:
        return np.zeros(len(U), bool)
    tried = {row.tobytes() for row in np.round(taken, 9) + 0.0}
    return np.array([row.tobytes() in tried for row in np.round(U, 9) + 0.0])
