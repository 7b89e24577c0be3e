"""Tuning inside every outer fold, so that the score is of the whole recipe."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.rows import Floats, n_rows, take
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.splits.cross_validate import score_name, seeded
from groundstate.evaluate.splits.folds import fold_pairs


@dataclass(frozen=True)
class NestedCV(Displayed):
    """What nested cross-validation found.

    Attributes
    ----------
    scores : Scores
        One outer score per fold: rows that neither fitting nor tuning saw.
    inner : (J,)
        The best inner score of each outer fold, which tuning has made optimistic.
    chosen : list of dict
        Settings picked in each fold.
    stability : dict
        For each setting, the share of folds that picked its commonest value.
    optimism : float
        Mean inner best minus outer score.
    """

    scores: Scores
    inner: Floats = field(repr=False)
    chosen: list[dict[str, Any]] = field(repr=False)
    stability: dict[str, float] = field(repr=False)
    optimism: float

    def __str__(self) -> str:
        return f"{self.scores}; tuning made the inner score {self.optimism:+.3g} better than that"


def nested_cv(
    estimator: Any,
    space: Any,
    X: Any,
    y: Any,
    outer: Any = 5,
    inner: int = 4,
    n_trials: int = 30,
    *,
    scoring: Any = None,
    groups: Any = None,
    search: Any = None,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> NestedCV:
    """Score a recipe that includes tuning.

    In each outer fold the settings are chosen by cross-validation of its training part alone.

    Parameters
    ----------
    estimator : unfitted; preparation and feature selection belong inside, as a pipeline
    space : settings by name, lists or scipy distributions: a grid of at most ``n_trials`` points is searched
        whole, anything else at random; a list of such spaces is fine too
    outer : folds or a splitter
    inner : folds of the tuning
    n_trials : settings tried in each outer fold
    search : ``search(estimator, key) -> searcher`` with ``fit``, ``best_score_``, ``best_params_``
        and ``score`` in place of scikit-learn's searches, for example a ``tune.Tune``

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3)); y = X[:, 0] + rng.normal(size=60)
    >>> found = nested_cv(Ridge(), {"alpha": [0.1, 10.0, 1000.0]}, X, y, outer=3, inner=3)
    >>> len(found.chosen), found.scores.axes
    (3, ('fold',))
    """
    from sklearn.base import clone

    key = Key.of(random_state)
    if isinstance(outer, (int, np.integer)):
        outer = fold_pairs(estimator, X, y, int(outer), key.fold("outer"), groups=groups)
    target = np.asarray(y)
    labels = None if groups is None else np.asarray(groups)
    values, best, chosen, sizes = [], [], [], []
    folds = outer.split(np.zeros(n_rows(X)), target, labels) if hasattr(outer, "split") else outer
    for i, (train, test) in enumerate(folds):
        model = seeded(clone(estimator), key.fold("model", i))
        part = None if labels is None else labels[train]
        if search is not None:
            searcher = search(model, key.fold("tune", i))
        else:
            searcher = _searcher(
                model, space, take(X, train), target[train], inner, n_trials, scoring, part, n_jobs,
                key.fold("tune", i),
            )  # fmt: skip
        extra = {} if part is None or search is not None else {"groups": part}
        searcher.fit(take(X, train), target[train], **extra)
        values.append(float(searcher.score(take(X, test), target[test])))
        best.append(float(searcher.best_score_))
        chosen.append(dict(searcher.best_params_))
        sizes.append((len(train), len(test)))
    if len(values) < 2:
        raise DataError("nested cross-validation needs at least two outer folds")
    n_train, n_test = (float(np.mean(column)) for column in zip(*sizes))
    name = score_name(estimator, scoring)
    scores = Scores(values, ("fold",), name, n_train, n_test)
    stability = {
        setting: Counter(str(c.get(setting)) for c in chosen).most_common(1)[0][1] / len(chosen)
        for setting in sorted({name for c in chosen for name in c})
    }
    return NestedCV(scores, np.array(best), chosen, stability, float(np.mean(best)) - scores.mean)


def _searcher(
    model: Any,
    space: Any,
    X: Any,
    y: NDArray[Any],
    inner: int,
    n_trials: int,
    scoring: Any,
    groups: Any,
    n_jobs: int | None,
    key: Key,
) -> Any:
    from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV

    seed = int(key.words(1)[0] % (2**31 - 1))
    cv = fold_pairs(model, X, y, inner, key.fold("folds"), groups=groups)
    spaces = space if isinstance(space, list) else [space]
    lists = all(isinstance(v, (list, tuple, np.ndarray)) for s in spaces for v in s.values())
    options = {"cv": cv, "scoring": scoring, "n_jobs": n_jobs, "error_score": "raise"}
    if lists and len(ParameterGrid(space)) <= n_trials:
        return GridSearchCV(model, space, **options)
    return RandomizedSearchCV(model, space, n_iter=n_trials, random_state=seed, **options)
