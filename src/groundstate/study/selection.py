"""From rows to one model: compare candidates, tune the best, fit it to all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.evaluate.board.ranking import Ranked, rank
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.metrics import Metric, metric
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats, classes_of, n_rows
from groundstate.evaluate.splits.folds import Split
from groundstate.study.candidates import DUMMY


@dataclass(frozen=True)
class Tuned(Displayed):
    """What a search of settings found.

    Attributes
    ----------
    params : settings of the lowest validation risk
    score : their mean score over the splits, larger is better
    space : what was searched, in words, by name
    trials : list of dicts with ``params``, ``score`` and ``state``
    importance : share of the variation of the score that each setting explains
    """

    params: dict[str, Any]
    score: float
    space: dict[str, str]
    trials: list[dict[str, Any]] = field(repr=False)
    importance: dict[str, float]


# search(recipe, X, y, weight, splits, score, key, name, seconds) -> Tuned, or why there is nothing to tune
Tuner = Callable[..., "Tuned | str"]


@dataclass(frozen=True)
class Scorer:
    """A metric as a score, larger is better, for anything that calls ``score(model, X, y)``."""

    name: str
    classes: NDArray[Any] | None

    def __call__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        measure = metric(self.name)
        predicted = Prediction.of(model, X, self.classes)
        truth = np.asarray(y)
        if self.classes is not None:
            truth = np.searchsorted(self.classes, truth)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)
        value = float(measure.score(truth, predicted, weight))
        return value if measure.greater_is_better else -value


@dataclass(frozen=True)
class Developed(Displayed):
    """One model and how it was found.

    Attributes
    ----------
    ranking : Ranked
        Every candidate with its usual settings.
    chosen : str
    recipe : the chosen candidate, unfitted, with its settings
    params : settings that differ from the usual ones
    tuned : Tuned or None
    untuned : str
        Why nothing was tuned, or that tuning did not help; empty when it did.
    model : the recipe, fitted to all rows; None when not asked for
    spare : Prediction or None
        The recipe's predictions for rows from fits that had not seen them.
    """

    ranking: Ranked
    chosen: str
    recipe: Any
    params: dict[str, Any]
    tuned: Tuned | None
    untuned: str
    model: Any
    spare: Prediction | None = field(repr=False)


def develop(
    candidates: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    *,
    task: Any,
    measure: Metric,
    splits: Sequence[Split],
    weight: Floats,
    key: Key,
    n_jobs: int = 1,
    level: float = 0.95,
    tuner: Tuner | None = None,
    name: str = "final",
    spare: bool = True,
    seconds: float | None = None,
) -> Developed:
    """Compare candidates on the splits, tune the best on the same splits, fit it to all rows.

    Parameters
    ----------
    tuner : searches settings; None leaves every model as it comes
    name : of the search, so that an interrupted one is found again
    spare : also answer for the rows of the splits with the recipe as tuned
    seconds : after which no new round of settings is tried
    """
    ranking = rank(
        candidates, X, y, task=task, metric=measure, cv=splits, key=key, sample_weight=weight,
        n_jobs=n_jobs, level=level, refit=False,
    )  # fmt: skip
    chosen = ranking.chosen
    recipe, params, tuned, untuned = candidates[chosen], {}, None, ""
    if chosen == DUMMY:
        untuned = "the dummy has nothing to tune"
    elif tuner is None:
        untuned = "not asked for"
    else:
        labels = classes_of(y)[0] if task == "classification" else None
        score = Scorer(measure.name, labels)
        found = tuner(recipe, X, y, weight, splits, score, key.fold("tune"), name, seconds)
        if isinstance(found, str):
            untuned = found
        else:
            tuned = found
            each = np.asarray(ranking.board[chosen].cv_scores)
            usual = float(each.mean()) * (1 if measure.greater_is_better else -1)
            if math.isnan(usual) or tuned.score > usual:
                from sklearn.base import clone

                params = tuned.params
                recipe = clone(recipe).set_params(**params)
            else:
                untuned = "no setting tried was better than the usual ones"
    predictions: Prediction | None = ranking.predictions[chosen]
    if spare and params:
        again = rank(
            {chosen: recipe}, X, y, task=task, metric=measure, cv=splits, key=key,
            sample_weight=weight, n_jobs=n_jobs, level=level, refit=False,
        )  # fmt: skip
        predictions = again.predictions[chosen]
    model = fit_clone(recipe, X, y, weight[: n_rows(X)], key.fold("refit", chosen))
    return Developed(ranking, chosen, recipe, params, tuned, untuned, model, predictions)
