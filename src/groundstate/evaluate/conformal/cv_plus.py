r"""CV+ and jackknife+: conformal prediction without setting rows aside.

Every row is scored by the model of the fold that left it out; a new row is answered by all fold
models. Coverage is at least :math:`1-2\alpha` for any distribution, and close to :math:`1-\alpha` for models
that a few rows do not move (Barber, Candès, Ramdas and Tibshirani).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.conformal.scores import centre_scale, class_scores
from groundstate.evaluate.conformal.split_conformal import CLASSES, Intervals, Sets, _score
from groundstate.evaluate.rows import n_rows, take
from groundstate.evaluate.splits.cross_validate import seeded
from groundstate.evaluate.splits.folds import fold_pairs
from groundstate.math.stats.interval import checked_level

Floats = NDArray[np.float64]
_BLOCK = 2**22


@dataclass(frozen=True)
class ConformalCV(Displayed):
    """Fold models with the scores of the rows they left out.

    Attributes
    ----------
    models : list of fitted models, one per fold
    fold : (N,) fold of each row
    scores : (N,) score of each row under the model of its fold
    """

    models: list[Any] = field(repr=False)
    fold: NDArray[np.intp] = field(repr=False)
    scores: Floats = field(repr=False)
    score: str
    level: float
    classes: Any = None

    def predict(self, X: Any) -> Intervals | Sets:
        """Intervals, or sets of classes, of new rows."""
        if self.score in CLASSES:
            return self._sets(X)
        parts = [centre_scale(model, X, self.score) for model in self.models]
        n, rows = len(self.scores), n_rows(X)
        low_at = int(np.floor((n + 1) * (1 - self.level) + 1e-9))
        high_at = int(np.ceil((n + 1) * self.level - 1e-9))
        low, high = np.full(rows, -np.inf), np.full(rows, np.inf)
        centre, unit = (np.stack([p[i] for p in parts]) for i in range(2))  # (folds, rows)
        step = max(1, _BLOCK // n)
        for at in range(0, rows, step):
            here = slice(at, at + step)
            middle = centre[self.fold, here].T  # (b, N)
            reach = self.scores * unit[self.fold, here].T
            if low_at >= 1:
                low[here] = np.partition(middle - reach, low_at - 1, axis=1)[:, low_at - 1]
            if high_at <= n:
                high[here] = np.partition(middle + reach, high_at - 1, axis=1)[:, high_at - 1]
        return Intervals(np.minimum(low, high), np.maximum(low, high), self.level)

    def _sets(self, X: Any) -> Sets:
        rows, k = n_rows(X), len(self.classes)
        below = np.zeros((rows, k))
        mean = np.zeros((rows, k))
        for f, model in enumerate(self.models):
            p = _spread(model, X, self.classes)
            mean += p
            own = np.sort(self.scores[self.fold == f])
            # rows of this fold that are less strange than the class would be
            below += np.searchsorted(own, class_scores(p, self.score), side="left")
        member = below < self.level * (len(self.scores) + 1)
        member[np.arange(rows), mean.argmax(1)] = True
        return Sets(member, self.classes, self.level)


def conformal_cv(
    estimator: Any,
    X: Any,
    y: Any,
    level: float = 0.9,
    score: Any = "auto",
    *,
    cv: int = 10,
    groups: Any = None,
    random_state: Key | RandomState = 0,
) -> ConformalCV:
    r"""CV+ of an unfitted estimator; ``cv`` equal to the number of rows is the jackknife+.

    Parameters
    ----------
    estimator : unfitted regressor or classifier
    level : wanted coverage :math:`1-\alpha`
    score : absolute or normalised for regressors, lac or aps for classifiers
    cv : folds
    groups : ``(N,)`` labels that never cross folds

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)); y = X[:, 0] + rng.normal(size=500)
    >>> band = conformal_cv(LinearRegression(), X[:200], y[:200]).predict(X[200:])
    >>> print(band.coverage(y[200:]))
    0.9 (0.8608 to 0.9291)
    """
    from sklearn.base import clone
    from sklearn.model_selection import LeaveOneOut

    checked_level(level)
    key, truth, n = Key.of(random_state), np.asarray(y), n_rows(X)
    kind = _score(estimator, score)
    if kind == "cqr":
        raise DataError("CV+ takes one estimator; for cqr set rows aside and use conformal")
    if not 2 <= cv <= n:
        raise DataError(f"cv is between 2 and the {n} rows, got {cv}")
    each = cv == n and groups is None
    folds = (
        LeaveOneOut().split(truth)
        if each
        else fold_pairs(estimator, X, y, cv, key.fold("folds"), groups=groups)
    )
    classes = np.unique(truth) if kind in CLASSES else None
    models, fold, scores = [], np.empty(n, np.intp), np.empty(n)
    for f, (train, test) in enumerate(folds):
        model = seeded(clone(estimator), key.fold("model", f)).fit(take(X, train), truth[train])
        models.append(model)
        fold[test] = f
        part = take(X, test)
        if classes is None:
            centre, unit = centre_scale(model, part, kind)
            scores[test] = np.abs(truth[test].astype(np.float64) - centre) / unit
        else:
            p = _spread(model, part, classes)
            at = np.searchsorted(classes, truth[test])
            scores[test] = class_scores(p, kind)[np.arange(len(test)), at]
    return ConformalCV(models, fold, scores, kind, level, classes)


def _spread(model: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Probabilities of all classes; those a fold has not seen get none."""
    own = np.asarray(model.predict_proba(X), np.float64)
    out = np.zeros((len(own), len(classes)))
    out[:, np.searchsorted(classes, model.classes_)] = own
    return out
