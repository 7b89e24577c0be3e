"""From rows to one model: what was compared, what was tuned, and what was fitted to all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from groundstate.evaluate.rows import Floats, n_rows
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
    name : the candidate whose settings were searched
    """

    params: dict[str, Any]
    score: float
    space: dict[str, str]
    trials: list[dict[str, Any]] = field(repr=False)
    importance: dict[str, float]
    name: str = ""


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
    level: float = 0.95,
) -> Developed:
    """Compare candidates on the splits and fit the best to all rows."""
    ranking = rank(
        candidates, X, y, task=task, metric=measure, cv=splits, key=key, sample_weight=weight,
        level=level, refit=False,
    )  # fmt: skip
    chosen = ranking.chosen
    model = fit_clone(candidates[chosen], X, y, weight[: n_rows(X)], key.fold("refit", chosen))
    untuned = "the dummy has nothing to tune" if chosen == DUMMY else "not asked for"
    return Developed(
        ranking, chosen, candidates[chosen], {}, None, untuned, model, ranking.predictions[chosen]
    )
