r"""Cross-validation: it scores a recipe, not a fitted model."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError, NotApplicable
from groundstate.evaluate.rows import Floats, n_rows, take
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.splits.folds import fold_pairs
from groundstate.evaluate.splits.population import fit_rows
from groundstate.math.stats.means import design_effect
from groundstate.models.population.many import log_reason

Aggregate = Literal["row", "fold", "fold_sum"]


@dataclass(frozen=True)
class CrossValidation(Displayed):
    r"""What cross-validation found.

    Attributes
    ----------
    scores : Scores
        One value per fold, with the corrected standard error
        :math:`s\sqrt{1/J + n_\text{test}/n_\text{train}}`.
    mean : float
        Mean over folds, each weighing as many rows as it has (``aggregate="row"``).
    predictions : (N,) or None
        What the fold that had not seen a row predicted about it; of the first repeat. None when some
        row is never tested (time series).
    folds : list of (train rows, test rows)
    fit_seconds, score_seconds : (J,)
    design_effect : float or None
        How much dependent rows of groups widen the interval, from the losses of the predictions.
    """

    scores: Scores
    mean: float
    predictions: NDArray[Any] | None = field(repr=False)
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = field(repr=False)
    fit_seconds: Floats = field(repr=False)
    score_seconds: Floats = field(repr=False)
    design_effect: float | None = None

    @property
    def standard_error(self) -> float:
        """Corrected standard error of the mean."""
        return self.scores.standard_error

    def __str__(self) -> str:
        return str(self.scores)


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    cv: Any = 5,
    repeats: int = 1,
    scoring: Any = None,
    groups: Any = None,
    *,
    time: Any = None,
    gap: int = 0,
    aggregate: Aggregate = "row",
    n_jobs: int | None = None,
    params: dict[str, Any] | None = None,
    random_state: Key | RandomState = 0,
) -> CrossValidation:
    """Score a recipe by scikit-learn's ``cross_validate``, with an honest error.

    Networks, also at the end of a pipeline, are trained on all folds as one program, with the same
    result.

    Parameters
    ----------
    estimator : unfitted; it is cloned for every fold and the fits are discarded
    cv : number of folds of the weight line (stratified for classes, whole groups when given), or
        a splitter
    repeats : times the folds are drawn again
    scoring : a scorer or its name; the estimator's ``score`` by default
    groups : ``(N,)`` labels of rows that belong together
    time : ``(N,)``; each fold trains on the past only, ``gap`` rows before it left out
    aggregate : ``"row"`` weighs folds by their rows, ``"fold"`` equally, ``"fold_sum"`` averages
        the sums over the rows of a fold
    params : passed on to ``fit``
    random_state : seed of the folds, and of estimators whose ``random_state`` is None

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> x = np.arange(40.0)[:, None]
    >>> found = cross_validate(Ridge(), x, 2 * x[:, 0] + np.sin(x[:, 0]), cv=4)
    >>> print(found)
    r2 0.9989 (0.9989 to 0.999), 4 values over fold
    """
    from sklearn.base import clone
    from sklearn.model_selection import cross_validate as sklearn_cv

    if aggregate not in ("row", "fold", "fold_sum"):
        raise ValueError(f"aggregate must be 'row', 'fold' or 'fold_sum', got {aggregate!r}")
    key = Key.of(random_state)
    model = seeded(clone(estimator), key.fold("model"))
    order = None
    if time is not None:
        order = np.argsort(np.asarray(time), kind="stable")
    weight = (params or {}).get("sample_weight")
    folds = list(_folds(estimator, X, y, cv, repeats, groups, order, gap, key, weight))
    found = _together(model, X, y, folds, scoring, params) or sklearn_cv(
        model, X, y, cv=folds, scoring=scoring, n_jobs=n_jobs, params=params,
        error_score="raise", return_estimator=True,
    )  # fmt: skip
    values = np.asarray(found["test_score"], np.float64)
    sizes = np.array([len(test) for _, test in folds], np.float64)
    train = float(np.mean([len(rows) for rows, _ in folds]))
    if aggregate == "row":
        mean = float(np.average(values, weights=sizes))
    else:
        mean = float((values * sizes if aggregate == "fold_sum" else values).mean())
    first = len(folds) // repeats
    predicted = _predictions(found["estimator"][:first], folds[:first], X)
    name = score_name(estimator, scoring)
    scores = Scores(values, ("fold",), name, train, float(sizes.mean()))
    effect = None
    if groups is not None and predicted is not None and y is not None:
        effect = _effect(estimator, np.asarray(y), predicted, groups)
    return CrossValidation(
        scores, mean, predicted, folds, np.asarray(found["fit_time"]), np.asarray(found["score_time"]),
        effect,
    )  # fmt: skip


def _together(
    model: Any,
    X: Any,
    y: Any,
    folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    scoring: Any,
    params: dict[str, Any] | None,
) -> dict[str, Any] | None:
    """What scikit-learn's function gives, from fits as one program; None where there is none."""
    from sklearn import get_config
    from sklearn.metrics import check_scoring

    given = dict(params or {})
    weight = given.pop("sample_weight", None)
    several = scoring is not None and not isinstance(scoring, str) and not callable(scoring)
    if given or several or get_config()["enable_metadata_routing"]:
        return None
    start = clock.perf_counter()
    own = None if weight is None else np.asarray(weight, np.float64)
    try:
        models = fit_rows(model, X, y, [train for train, _ in folds], weight=own)
    except NotApplicable as reason:
        log_reason(model, reason)
        return None
    fitted = clock.perf_counter()
    score = check_scoring(model, scoring)
    target = np.asarray(y)
    values = [
        score(one, take(X, test), target[test])
        for one, (_, test) in zip(models, folds, strict=True)
    ]
    scored, n = clock.perf_counter(), len(folds)
    return {
        "estimator": models,
        "test_score": values,
        "fit_time": np.full(n, (fitted - start) / n),
        "score_time": np.full(n, (scored - fitted) / n),
    }


def one_standard_error(means: Any, errors: Any, complexity: Any, greater: bool = True) -> int:
    """The simplest setting within one standard error of the best.

    Parameters
    ----------
    means, errors : ``(S,)`` mean scores of settings and their standard errors
    complexity : ``(S,)`` numbers, larger is more complex
    greater : whether larger scores are better

    Returns
    -------
    position of the setting

    Examples
    --------
    >>> one_standard_error([0.80, 0.89, 0.90], [0.02, 0.02, 0.02], [1, 2, 3])
    1
    """
    m, e, c = (np.asarray(v, np.float64) for v in (means, errors, complexity))
    if not m.shape == e.shape == c.shape or m.ndim != 1:
        raise DataError(f"one mean, error and complexity per setting, got {m.shape}, {e.shape}")
    m = m if greater else -m
    best = int(np.nanargmax(m))
    near = np.flatnonzero(m >= m[best] - e[best])
    return int(near[np.lexsort((-m[near], c[near]))[0]])


def score_name(estimator: Any, scoring: Any) -> str:
    """What is measured: the scorer's name, or what ``estimator.score`` gives.

    >>> from groundstate import LogisticRegression, Ridge
    >>> score_name(LogisticRegression(), None), score_name(Ridge(), None), score_name(None, "f1")
    ('accuracy', 'r2', 'f1')
    """
    from sklearn.base import RegressorMixin, is_classifier

    if isinstance(scoring, str):
        return scoring
    if scoring is None and is_classifier(estimator):
        return "accuracy"
    plain = getattr(type(estimator), "score", None) is RegressorMixin.score
    return "r2" if scoring is None and plain else "score"


def seeded(model: Any, key: Key) -> Any:
    """The model, with a seed of its own for every ``random_state`` left at None."""
    names = {
        name: int(key.fold(name).words(1)[0] % (2**31 - 1))
        for name, value in sorted(model.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return model.set_params(**names) if names else model


def _folds(
    estimator: Any,
    X: Any,
    y: Any,
    cv: Any,
    repeats: int,
    groups: Any,
    order: NDArray[np.intp] | None,
    gap: int,
    key: Key,
    weight: Any = None,
) -> Any:
    from sklearn.model_selection import LeaveOneOut, TimeSeriesSplit

    n = n_rows(X)
    if order is not None:
        if groups is not None or repeats > 1:
            raise DataError("folds in time have no groups and no repeats; drop one of them")
        for train, test in TimeSeriesSplit(cv, gap=gap).split(np.zeros(n)):
            yield order[train], order[test]
        return
    if isinstance(cv, (int, np.integer)):
        if not 2 <= cv <= n:
            raise DataError(f"cv is between 2 and the {n} rows, got {cv}")
        if cv == n and groups is None:
            cv = LeaveOneOut()
        else:
            cv = fold_pairs(
                estimator, X, y, int(cv), key.fold("folds"), repeats=repeats, groups=groups,
                sample_weight=weight,
            )  # fmt: skip
    yield from (cv.split(np.zeros(n), y, groups) if hasattr(cv, "split") else cv)


def _predictions(models: list[Any], folds: Any, X: Any) -> NDArray[Any] | None:
    from sklearn.utils import get_tags

    n = n_rows(X)
    tested = np.zeros(n, int)
    for _, test in folds:
        tested[test] += 1
    if (tested != 1).any() or not hasattr(models[0], "predict"):
        return None
    out: NDArray[Any] | None = None
    pairs = get_tags(models[0]).input_tags.pairwise  # columns are the training rows
    for model, (train, test) in zip(models, folds):
        asked = take(X, test)
        predicted = np.asarray(model.predict(asked[:, train] if pairs else asked))
        if out is None:
            out = np.empty((n, *predicted.shape[1:]), predicted.dtype)
        elif predicted.dtype.kind == "U" and predicted.dtype.itemsize > out.dtype.itemsize:
            out = out.astype(predicted.dtype)
        out[test] = predicted
    return out


def _effect(estimator: Any, y: NDArray[Any], predicted: NDArray[Any], groups: Any) -> float | None:
    from sklearn.base import is_classifier

    if is_classifier(estimator):
        loss = (y != predicted).astype(np.float64)
    else:
        loss = np.square(y.astype(np.float64) - predicted)
    if loss.ndim != 1 or not np.ptp(loss) > 0:
        return None
    try:
        found = design_effect(loss, groups)
    except DataError:  # one row per group: nothing depends on anything
        return 1.0
    return None if math.isnan(found) else found
