"""The search of settings that an assessment uses: an Optuna study that can be taken up again."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.evaluate.splits.folds import Split
from groundstate.models.settings import Choice
from groundstate.models.tables.table import TablePredictor
from groundstate.study.candidates import inner_of
from groundstate.study.selection import Scorer, Tuned
from groundstate.tune import Space, default_space
from groundstate.tune.extra import optuna_module

_ENOUGH_FOR_IMPORTANCE = 8


@dataclass(frozen=True)
class Search:
    """Tunes a candidate on the splits that compared it with the others.

    Parameters
    ----------
    n_trials : settings to try
    storage : start of the name of the studies' SQLite files; None keeps them in memory
    n_jobs : worker processes of the final search
    exact : ``storage`` is the whole name
    """

    n_trials: int = 10
    storage: str | None = None
    n_jobs: int = 1
    exact: bool = False

    def __call__(
        self,
        recipe: Any,
        X: Any,
        y: Any,
        weight: Any,
        splits: Sequence[Split],
        score: Scorer,
        key: Key,
        name: str,
        seconds: float | None = None,
    ) -> Tuned | str:
        """The best settings, or why there are none."""
        if self.n_trials < 1:
            return "not asked for (--tune)"
        if importlib.util.find_spec("optuna") is None:
            return "it needs Optuna: pip install 'groundstate[tune]'"
        space = space_of(recipe)
        if not len(space):
            return f"{type(inner_of(recipe)).__name__} has nothing to tune"
        from groundstate.tune import Tune

        search = Tune(
            recipe,
            space,
            n_trials=self.n_trials,
            timeout=seconds,
            cv=[(part.train_rows, part.test_rows) for part in splits],
            storage=self.storage if self.exact else self.path(name),
            n_jobs=self.n_jobs if name == "final" else 1,
            scoring=score,
            refit=False,
            study_name=name,
            random_state=key,
        )
        weighted = {} if bool(np.all(np.asarray(weight) == 1)) else {"sample_weight": weight}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(X, y, **weighted)
        return Tuned(
            dict(search.best_params_),
            float(search.best_score_),
            {setting: repr(space[setting]) for setting in space},
            _trials(search.cv_results_),
            _importance(search.study_) if name == "final" else {},  # of folds nobody asks
        )

    def proposals(self, recipe: Any, key: Key) -> list[dict[str, Any]] | str:
        """Settings to try, spread evenly over the space, or why there are none.

        They depend on no score, so that a race over them needs no further rows to be judged by.
        """
        if self.n_trials < 1:
            return "not asked for (--tune)"
        space = space_of(recipe)
        if not len(space):
            return f"{type(inner_of(recipe)).__name__} has nothing to tune"
        if importlib.util.find_spec("optuna") is None:
            return "it needs Optuna: pip install 'groundstate[tune]'"
        from groundstate.tune.samplers.acquisition import spread
        from groundstate.tune.samplers.cube import Cube

        cube = Cube(space.distributions(), space.priors)
        points = spread(self.n_trials, len(cube), key)
        found: list[dict[str, Any]] = []
        for point in points:
            setting = space.decode(cube.setting(point))
            if setting not in found:
                found.append(setting)
        return found

    def path(self, name: str) -> Path | None:
        """The file of the study of that name."""
        return None if self.storage is None else Path(f"{self.storage}{name.replace(' ', '-')}.db")


def space_of(recipe: Any) -> Space:
    """The settings worth searching, under the names by which the recipe sets them.

    >>> from groundstate import Ridge
    >>> space_of(TablePredictor(Ridge())).names
    ['estimator__alpha']
    """
    if not isinstance(recipe, TablePredictor):
        return default_space(recipe)
    inner = default_space(recipe.estimator)
    return Space({f"estimator__{name}": inner[name] for name in inner})


def tuned_by(
    recipe: Any, tried: Sequence[tuple[dict[str, Any], float]], best: dict[str, Any]
) -> Tuned:
    """What a race over settings found.

    Parameters
    ----------
    tried : settings with their mean score over the splits, larger is better
    best : the settings of the lowest risk
    """
    space = space_of(recipe)
    trials: list[dict[str, Any]] = [
        {
            "params": dict(params),
            "score": None if math.isnan(score) else float(score),
            "state": "FAIL" if math.isnan(score) else "COMPLETE",
        }
        for params, score in tried
    ]
    score = next(score for params, score in tried if params == best)
    return Tuned(
        dict(best),
        float(score),
        {setting: repr(space[setting]) for setting in space},
        trials,
        _importance_of(space, tried),
    )


def _importance_of(space: Space, tried: Sequence[tuple[dict[str, Any], float]]) -> dict[str, float]:
    optuna = optuna_module()
    done = [(params, score) for params, score in tried if not math.isnan(score)]
    if len(done) < _ENOUGH_FOR_IMPORTANCE:
        return {}
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(direction="minimize")
        shapes = space.distributions()
        for params, score in done:
            labels = {name: _label(space, name, value) for name, value in params.items()}
            study.add_trial(
                optuna.trial.create_trial(params=labels, distributions=shapes, value=-score)
            )
    finally:
        optuna.logging.set_verbosity(level)
    return _importance(study)


def _label(space: Space, name: str, value: Any) -> Any:
    """What a study stores for a value."""
    row = space[name]
    if isinstance(row, Choice):
        return row.labels[next(i for i, choice in enumerate(row.choices) if choice is value
                               or choice == value)]  # fmt: skip
    return value


def _trials(results: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "params": dict(params),
            "score": None if math.isnan(score) else float(score),
            "state": str(state),
        }
        for params, score, state in zip(
            results["params"], results["mean_test_score"], results["state"]
        )
    ]


def _importance(study: Any) -> dict[str, float]:
    """Shares of the spread of the risk that single settings explain (functional ANOVA)."""
    import optuna
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    from groundstate.tune.results import finished

    done = [t for t in finished(study) if t.state.name == "COMPLETE"]
    if len(done) < _ENOUGH_FOR_IMPORTANCE or len({t.value for t in done}) < 2:
        return {}
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:  # in the order of the places, whichever process did them and when
        ordered = optuna.create_study(direction="minimize")
        ordered.add_trials(done)
        found = get_param_importances(ordered, evaluator=FanovaImportanceEvaluator(seed=0))
    except (ValueError, RuntimeError):  # no setting that all trials share
        return {}
    finally:
        optuna.logging.set_verbosity(level)
    return {name: float(share) for name, share in found.items()}
