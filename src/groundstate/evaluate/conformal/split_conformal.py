r"""Conformal prediction: sets and intervals that hold the truth at a stated rate.

With scores :math:`s_1,\dots,s_n` of calibration rows that the model has not seen, the set

.. math:: C(x) = \{y : s(x, y) \le q\}, \qquad q = s_{(\lceil(n+1)(1-\alpha)\rceil)}

holds the outcome of a new row with probability at least :math:`1-\alpha`, for any model and any
distribution, as long as rows are exchangeable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.conformal.scores import band, centre_scale, class_scores, quantile
from groundstate.evaluate.rows import n_rows
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.proportions import proportion_interval

Floats = NDArray[np.float64]
Score = Literal["auto", "absolute", "normalised", "cqr", "lac", "aps"]
REGRESSION, CLASSES = ("absolute", "normalised", "cqr"), ("lac", "aps")


@dataclass(frozen=True)
class Intervals(Displayed):
    """An interval for each row.

    Attributes
    ----------
    low, high : (n,)
    level : float
    """

    low: Floats
    high: Floats
    level: float

    def __len__(self) -> int:
        return len(self.low)

    @property
    def mean_width(self) -> float:
        """Mean length."""
        return float((self.high - self.low).mean())

    def contains(self, y: Any) -> NDArray[np.bool_]:
        """Whether each truth lies in its interval.  # (n,)"""
        truth = np.asarray(y, np.float64)
        return (self.low <= truth) & (truth <= self.high)

    def coverage(self, y: Any, level: float = 0.95) -> Interval:
        """Share of truths inside, with Wilson's interval."""
        return proportion_interval(int(self.contains(y).sum()), len(self), level)


@dataclass(frozen=True)
class Sets(Displayed):
    """A set of classes for each row.

    Attributes
    ----------
    member : (n, K) bool
    classes : (K,)
    level : float
    """

    member: NDArray[np.bool_]
    classes: NDArray[Any]
    level: float

    def __len__(self) -> int:
        return len(self.member)

    def __getitem__(self, row: int) -> list[Any]:
        return list(self.classes[self.member[row]].tolist())

    @property
    def mean_size(self) -> float:
        """Mean number of classes in a set."""
        return float(self.member.sum(1).mean())

    def contains(self, y: Any) -> NDArray[np.bool_]:
        """Whether each label lies in its set; labels never seen lie in none.  # (n,)"""
        labels = np.asarray(y)
        at = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        return self.member[np.arange(len(labels)), at] & (self.classes[at] == labels)

    def coverage(self, y: Any, level: float = 0.95) -> Interval:
        """Share of labels inside, with Wilson's interval."""
        return proportion_interval(int(self.contains(y).sum()), len(self), level)


@dataclass(frozen=True)
class Conformal(Displayed):
    """A fitted model with calibrated sets or intervals.

    Attributes
    ----------
    model : the fitted model
    score : name of the score
    level : float
    limits : dict
        The score up to which outcomes are kept: one, or one per group or class.
    n : int
        Calibration rows.
    """

    model: Any = field(repr=False)
    score: str
    level: float
    limits: dict[Any, float]
    n: int
    by: Literal["all", "group", "class"] = "all"
    scale: Any = field(default=None, repr=False)
    key: Key | None = field(default=None, repr=False)

    def predict(self, X: Any, groups: Any = None) -> Intervals | Sets:
        """Intervals, or sets of classes, of new rows.

        Parameters
        ----------
        groups : ``(n,)``, needed when calibrated by group; an unknown group gets everything
        """
        n = n_rows(X)
        if self.by == "group":
            if groups is None or len(groups) != n:
                raise DataError("this was calibrated by group; pass groups, one label per row")
            limit = np.array([self.limits.get(g, np.inf) for g in np.asarray(groups).tolist()])
        else:
            limit = np.full(n, self.limits.get("all", np.inf))
        if self.score in REGRESSION:
            if self.score == "cqr":
                low, high = band(self.model, X)
                low, high = low - limit, high + limit
                middle = (low + high) / 2  # a negative limit may turn a band inside out
                return Intervals(np.minimum(low, middle), np.maximum(high, middle), self.level)
            centre, unit = centre_scale(self.model, X, self.score, self.scale)
            return Intervals(centre - limit * unit, centre + limit * unit, self.level)
        p = np.asarray(self.model.predict_proba(X), np.float64)
        u = None if self.key is None else self.key.fold("predict").uniform(len(p))
        strange = class_scores(p, self.score, u)
        classes = np.asarray(self.model.classes_)
        if self.by == "class":
            each = np.array([self.limits.get(c, np.inf) for c in classes.tolist()])
            member = strange <= each
        else:
            member = strange <= limit[:, None]
        if self.key is None:
            member[np.arange(len(p)), p.argmax(1)] = True  # an empty set would say nothing
        return Sets(member, classes, self.level)


def conformal(
    model: Any,
    X: Any,
    y: Any,
    level: float = 0.9,
    score: Score = "auto",
    *,
    by: Literal["all", "group", "class"] = "all",
    groups: Any = None,
    scale: Any = None,
    randomised: bool = False,
    random_state: Key | RandomState = 0,
) -> Conformal:
    r"""Split conformal prediction: calibrate a fitted model on rows it has not seen.

    ==========  ==============================================================================
    absolute    :math:`|y - \hat y(x)|`: intervals of one width
    normalised  :math:`|y - \hat y(x)|/\sigma(x)`: wider where the model (or ``scale``) is unsure
    cqr         :math:`\max(l(x) - y,\, y - u(x))` around a quantile band
    lac         :math:`1 - p(y|x)`: the smallest sets on average
    aps         probability of all classes at least as likely: sets that grow with doubt
    ==========  ==============================================================================

    Parameters
    ----------
    model : fitted; for ``"cqr"`` a pair (low, high) of quantile models, or one with both
    X, y : calibration rows
    level : wanted coverage
    score : ``"auto"`` is absolute for regressors and lac for classifiers
    by : ``"group"`` calibrates each group of ``groups`` alone, ``"class"`` each class (Mondrian), so
        that the rate holds for each of them
    scale : fitted model or function that gives σ(x), for ``"normalised"``
    randomised : break the lumps of ``"aps"`` at random, for exact coverage

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 1)); y = X[:, 0] + rng.normal(size=900)
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> band = conformal(model, X[300:600], y[300:600]).predict(X[600:])
    >>> print(band.coverage(y[600:]))
    0.9033 (0.8646 to 0.9318)
    """
    checked_level(level)
    kind = _score(model, score)
    truth = np.asarray(y)
    key = Key.of(random_state).fold("aps") if randomised and kind == "aps" else None
    if kind in REGRESSION:
        real = truth.astype(np.float64)
        if kind == "cqr":
            low, high = band(model, X)
            scores = np.maximum(low - real, real - high)
        else:
            centre, unit = centre_scale(model, X, kind, scale)
            scores = np.abs(real - centre) / unit
        if by == "class":
            raise DataError("by='class' is for classifiers; use by='group' with groups")
    else:
        p = np.asarray(model.predict_proba(X), np.float64)
        classes = np.asarray(model.classes_)
        at = np.minimum(np.searchsorted(classes, truth), len(classes) - 1)
        if (classes[at] != truth).any():
            raise DataError("a calibration row has a label that the model has never seen")
        u = None if key is None else key.fold("calibrate").uniform(len(p))
        scores = class_scores(p, kind, u)[np.arange(len(p)), at]
    if not np.isfinite(scores).all():
        raise DataError("the model's answers on the calibration rows are not finite")
    if by == "all":
        limits: dict[Any, float] = {"all": quantile(scores, level)}
    else:
        if by == "group" and groups is None:
            raise DataError("by='group' needs groups, one label per calibration row")
        labels = truth if by == "class" else np.asarray(groups)
        limits = {g: quantile(scores[labels == g], level) for g in np.unique(labels).tolist()}
    return Conformal(model, kind, level, limits, len(scores), by, scale, key)


def _score(model: Any, score: str) -> str:
    from sklearn.base import is_classifier

    pair = isinstance(model, tuple)
    if score == "auto":
        score = "cqr" if pair else "lac" if is_classifier(model) else "absolute"
    if score not in (*REGRESSION, *CLASSES):
        raise ValueError(
            f"score must be one of {', '.join((*REGRESSION, *CLASSES))}, got {score!r}"
        )
    if score in CLASSES and not hasattr(model, "predict_proba"):
        raise DataError(f"{score} sets need a classifier with predict_proba")
    return score
