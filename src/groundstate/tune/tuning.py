r"""The operator Tune: the settings of the lowest validation risk."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.tune.extra import optuna_module
from groundstate.tune.final import final_model
from groundstate.tune.judging import judged_parts
from groundstate.tune.rows import Rows
from groundstate.tune.space import Space
from groundstate.tune.spaces import default_space
from groundstate.tune.trials import Plan


def _has(name: str) -> Any:
    def check(self: Any) -> bool:
        model = getattr(self, "best_estimator_", self.estimator)
        return hasattr(model, name)

    return check


class Tune(MetaEstimatorMixin, BaseEstimator):
    r"""Choose the settings of an estimator by validation risk, then fit it with them.

    .. math::
        \hat\lambda = \arg\min_{\lambda} \frac1S \sum_{s=1}^S
        \hat R_{\mathrm{val}}\bigl(\mathrm{Learn}(D; \lambda, s)\bigr)

    Trials are those of an Optuna study that lowers the risk, so that storages, dashboards and
    pruners are Optuna's. The same ``random_state`` gives the same trials for any ``n_jobs``,
    interrupted and resumed or not.

    Parameters
    ----------
    estimator : anything with ``fit`` and ``predict`` or ``score``
    space : Space or what ``Space`` takes, default=None
        None is ``default_space(estimator)``.
    sampler : str or optuna sampler, default="smbo"
        ``"smbo"``, ``"cem"``, ``"random"``, ``"qmc"``, ``"grid"``, ``"tpe"``, ``"gp"`` or
        ``"gradient"`` (penalty of ridge and logistic regression); random below 10 trials.
    n_trials : int, default=50
        Trials of the whole study, those of earlier calls on the same storage included.
    timeout : float, default=None
        Seconds after which no new round begins.
    cv : None, int, splitter or iterable, default=None
        None judges by validation rows: those passed to ``fit``, or a fifth of the rows. A number
        cuts folds on the weight line.
    seeds_per_trial : int, default=1
        Fits of each setting whose risks are averaged.
    pruner : None, ``"median"``, ``"halving"``, ``"hyperband"`` or optuna pruner
        Stops trials between folds, shares of rows or steps; ``"halving"`` keeps a quarter from rung
        to rung. A round that was interrupted in the middle may be pruned otherwise.
    storage : None, path, URL or optuna storage
        A path is a SQLite file, a URL any database that Optuna knows, ``postgresql://...`` too.
    n_jobs : int, default=1
        Worker processes.
    scoring : str or callable, default=None
        A score, higher is better; None is the estimator's own.
    refit : bool, default=True
        Learn from training and validation rows with the best settings; False keeps the training
        rows only.
    n_models : int, default=1
        So many fits with fresh seeds, averaged.
    refit_steps : ``"scale"`` or ``"keep"``
        Number of steps of an early-stopped model in the refit: grown with the rows, or kept.
    fidelity : None or ``"rows"``
        Try every setting on a share of the rows first, doubling it from rung to rung.
    rungs : int, default=4
        Rungs of ``fidelity="rows"``, from 1/8 of the rows on.
    checkpoints : int, default=0
        Stops on the way of an iterative estimator with ``warm_start``; the best one counts.
    batch : int, default=4
        Trials of a round, which are proposed together.
    shared : bool, default=False
        Several processes run this study at once on one storage.
    study_name : str, default="groundstate"
    random_state : int, default=0

    Attributes
    ----------
    best_params_, best_score_, best_index_
    best_estimator_ : the final model; ``provenance_`` records what it was learned from
    cv_results_ : dict of arrays as of scikit-learn's searches, one entry for each trial
    study_ : optuna.Study
    summary_ : str
        Two lines: the best settings, and how optimistic the score of a winner is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import groundstate
    >>> from groundstate.tune import Tune
    >>> X, y = load_iris(return_X_y=True)
    >>> search = Tune(groundstate.SVC(), n_trials=12, cv=3).fit(X, y)
    >>> sorted(search.best_params_), search.best_score_ > 0.95
    (['C', 'gamma'], True)
    """

    def __init__(
        self,
        estimator: Any,
        space: Any = None,
        sampler: Any = "smbo",
        n_trials: int = 50,
        timeout: float | None = None,
        cv: Any = None,
        seeds_per_trial: int = 1,
        pruner: Any = None,
        storage: Any = None,
        n_jobs: int = 1,
        *,
        scoring: Any = None,
        refit: bool = True,
        n_models: int = 1,
        refit_steps: str = "scale",
        fidelity: str | None = None,
        rungs: int = 4,
        checkpoints: int = 0,
        batch: int = 4,
        shared: bool = False,
        study_name: str = "groundstate",
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.sampler = sampler
        self.n_trials = n_trials
        self.timeout = timeout
        self.cv = cv
        self.seeds_per_trial = seeds_per_trial
        self.pruner = pruner
        self.storage = storage
        self.n_jobs = n_jobs
        self.scoring = scoring
        self.refit = refit
        self.n_models = n_models
        self.refit_steps = refit_steps
        self.fidelity = fidelity
        self.rungs = rungs
        self.checkpoints = checkpoints
        self.batch = batch
        self.shared = shared
        self.study_name = study_name
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, validation: Any = None
    ) -> Self:
        """Search, then learn the final model.

        Parameters
        ----------
        X, y, sample_weight : training rows; the test rows stay outside
        validation : (X, y) or (X, y, sample_weight) of other rows, or positions of rows of X;
            used with ``cv=None``
        """
        optuna_module()  # says what to install
        from groundstate.tune.driver import Driver, open_study

        self._check()
        space = default_space(self.estimator) if self.space is None else Space(self.space)
        if space.function is None:
            if not len(space):
                raise DataError(f"{type(self.estimator).__name__} has nothing to tune; pass space=")
            space.check(self.estimator)
        key = Key.of(self.random_state)
        D = Rows.of(X, y, sample_weight)
        parts, everything = judged_parts(
            D, self.cv, validation, key.fold("split"), is_classifier(self.estimator)
        )
        plan = Plan.of(
            self.estimator, parts, self.seeds_per_trial, self.scoring, key,
            self.fidelity, self.rungs, self.checkpoints,
        )  # fmt: skip
        study = open_study(self.storage, self.study_name)
        if self.sampler == "gradient":
            from groundstate.tune.gradients.descent import descend

            descend(study, space, plan, self.n_trials)
        else:
            Driver(self, study, space, plan, key).run()
        self._conclude(study, space, plan, parts, everything, key)
        return self

    def _check(self) -> None:
        for name in ("n_trials", "seeds_per_trial", "n_models", "batch"):
            if int(getattr(self, name)) < 1:
                raise DataError(f"{name} is at least 1, got {getattr(self, name)}")
        if self.fidelity not in (None, "rows"):
            raise DataError(f"fidelity is None or 'rows', got {self.fidelity!r}")
        if self.refit_steps not in ("scale", "keep"):
            raise DataError(f"refit_steps is 'scale' or 'keep', got {self.refit_steps!r}")

    def _conclude(
        self, study: Any, space: Space, plan: Plan, parts: Any, everything: Rows, key: Key
    ) -> None:
        from groundstate.tune.results import cv_results, finished, summary

        trials = finished(study)
        done = [t for t in trials if t.state.name == "COMPLETE"]
        if not done:
            notes = [t.user_attrs.get("error") for t in trials]
            first = next((note for note in notes if note), "no trial was finished in time")
            raise DataError(
                f"no setting of {type(self.estimator).__name__} could be fitted; {first}"
            )
        best = min(done, key=lambda trial: trial.value)  # of equal ones the first
        self.study_ = study
        self.space_ = space
        self.n_splits_ = len(parts)
        self.cv_results_ = cv_results(trials, space)
        self.best_params_ = space.decode(best.params)
        self.best_score_ = -float(best.value)
        self.best_index_ = trials.index(best)
        rows = everything if self.refit else parts[0].train
        steps = best.user_attrs.get("steps")
        self.best_estimator_ = final_model(
            self.estimator, self.best_params_, rows, self.n_models, key, steps,
            len(rows) / max(1, len(parts[0].train)) if self.refit_steps == "scale" else 1.0,
        )  # fmt: skip
        held = sum(len(part.test) for part in parts)
        self.summary_ = summary(self.best_params_, self.best_score_, len(done), held, best)
        if hasattr(self.best_estimator_, "classes_"):
            self.classes_ = self.best_estimator_.classes_

    def _model(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @available_if(_has("predict"))
    def predict(self, X: Any) -> Any:
        """Answers of the final model."""
        return self._model().predict(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the final model."""
        return self._model().predict_proba(X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Scores of the final model."""
        return self._model().decision_function(X)

    @available_if(_has("transform"))
    def transform(self, X: Any) -> Any:
        """Representations of the final model."""
        return self._model().transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score of the final model, by ``scoring``."""
        from groundstate.tune.scoring import risk_of

        return -risk_of(self._model(), Rows.of(X, y, sample_weight), self.scoring)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.input_tags.sparse = inner.regressor_tags, inner.input_tags.sparse
        tags.target_tags.required = inner.target_tags.required
        return tags

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the rows that the final model has seen."""
        return int(np.asarray(self._model().n_features_in_))
