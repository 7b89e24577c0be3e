"""scikit-learn's checks at the door, with one sentence where a value is NaN or infinite."""

from __future__ import annotations

from functools import cache
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data as scikit_learn_checks
from torch import Tensor

from groundstate.compute.foreign.sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    check_sample_weight,
    make_constraint,
)
from groundstate.compute.rows import RowContainer, real_dtype
from groundstate.errors import DataError
from groundstate.models.arrays import unwrap
from groundstate.models.entries import no_label_missing, no_numbers, target_numbers, unique_names

TAKES_MISSING = {
    "classifier": "HistGradientBoostingClassifier or GaussianNB",
    "regressor": "HistGradientBoostingRegressor",
}


COMMON: dict[str, Any] = {  # what parameters of these names may be, where a class does not say
    "alpha": [Interval(Real, 0, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "bootstrap": ["boolean"],
    "C": [Interval(Real, 0, None, closed="neither")],
    "callbacks": "no_validation",
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "copy": ["boolean"],
    "copy_X": ["boolean"],
    "cv": ["cv_object"],
    "device": "no_validation",
    "early_stopping": ["boolean"],
    "epsilon": [Interval(Real, 0, None, closed="left")],
    "estimator": [HasMethods(["fit", "predict"]), None],
    "estimators": [list, None],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "n_components": [Interval(Integral, 1, None, closed="left"), None],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "n_jobs": [None, Integral],
    "positive": ["boolean"],
    "priors": ["array-like", None],
    "random_state": ["random_state"],
    "shuffle": ["boolean"],
    "tol": [Interval(Real, 0, None, closed="left")],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
}


def validate_data(
    estimator: Any, X: Any = "no_validation", y: Any = "no_validation", **settings: Any
) -> Any:
    """``sklearn.utils.validation.validate_data``; a refusal says how many entries and where.

    Parameters
    ----------
    estimator : whose ``n_features_in_`` and ``feature_names_in_`` are set or compared
    X, y : rows and targets
    settings : as in scikit-learn

    Raises
    ------
    DataError : NaN where the model has no use for it, infinity, or entries that are no numbers
    """
    if hasattr(X, "columns"):
        unique_names(X)
    y = _target(estimator, y)
    try:
        with np.errstate(over="ignore"):  # what overflows is infinite, and refused as such
            return scikit_learn_checks(estimator, X, y, **settings)
    except (ValueError, TypeError) as error:
        message = str(error)
        if sentence := no_numbers(estimator, X):
            raise DataError(sentence) from None
        name = "y" if message.startswith("Input y contains") else "X"
        if not message.startswith((f"Input {name} contains", "Input contains NaN")):
            raise
        missing = "contains NaN" in message
        sentence = f"Input {name} contains {'NaN' if missing else 'infinity'}"
        asked = settings.get("dtype") if name == "X" else None
        sentence += _where(X if name == "X" else y, missing, asked)
        raise DataError(f"{sentence}; {_advice(estimator, name, missing)}") from None


def further(model: Any, X: Any, y: Any, first: bool, **settings: Any) -> Any:
    """Rows and targets of one call of ``partial_fit``: the first counts columns, others compare."""
    return validate_data(
        model, unwrap(X)[0], unwrap(y)[0], reset=first, dtype=[np.float64, np.float32], order="C",
        accept_sparse=model._accept_sparse,
        ensure_all_finite="allow-nan" if model._allow_nan else True, **settings,
    )  # fmt: skip


def checked_target(estimator: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Targets of rows that are no table: finite numbers of a regressor, labels of a classifier."""
    y = _target(estimator, y)
    for missing in (True, False) if y.dtype.kind == "f" else ():
        bad = np.argwhere(_is(y, missing))
        if len(bad):
            raise DataError(
                f"Input y contains {'NaN' if missing else 'infinity'} in {len(bad)} of {y.size} "
                f"entries, first in row {bad[0, 0]}; {_advice(estimator, 'y', missing)}"
            )
    return y


def _target(estimator: Any, y: Any) -> Any:
    """Numbers for a regressor, no missing label for a classifier."""
    kind = estimator.__sklearn_tags__().estimator_type
    if kind == "regressor":
        return target_numbers(estimator, y)
    if kind == "classifier":
        no_label_missing(y)
    return y


@cache
def constraints_of(cls: Any) -> tuple[tuple[str, Any, tuple[Any, ...]], ...]:
    """Parameters of a class, an allowed default (else a value nobody passes), what they may be."""
    rows = []
    given = signature(cls.__init__).parameters
    for name in cls._get_param_names():
        if cls._parameter_constraints.get(name, "no_validation") == "no_validation":
            continue
        allowed = tuple(make_constraint(one) for one in cls._parameter_constraints[name])
        default = given[name].default if name in given else object()
        fine = any(one.is_satisfied_by(default) for one in allowed)
        rows.append((name, default if fine else object(), allowed))
    return tuple(rows)


def checked_weight(weight: Any, X: Any) -> NDArray[Any]:
    """One weight of at least zero for each row of X, not all of them zero."""
    if isinstance(X, Tensor | RowContainer):
        X = np.empty((len(X), 0), str(real_dtype({"x": X})).removeprefix("torch."))
    checked: NDArray[Any] = check_sample_weight(
        unwrap(weight)[0], X, dtype=X.dtype, ensure_non_negative=True
    )
    if not checked.sum() > 0:
        raise ValueError("sample_weight must be non-negative with a positive sum")
    return checked


def checked_count(n: Any, name: str = "n_samples") -> int:
    """A whole number of at least one, such as how many rows to draw."""
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise ValueError(f"{name} must be a whole number, got {n!r}")
    if n < 1:
        raise ValueError(f"{name} must be at least 1, got {n}")
    return int(n)


def _advice(estimator: Any, name: str, missing: bool) -> str:
    if name == "y":
        return "drop the rows without a finite target"
    if not missing:
        return "replace such values or drop their rows"
    other = TAKES_MISSING.get(str(estimator.__sklearn_tags__().estimator_type))
    use = "" if other is None else f", or use a model that takes missing values: {other}"
    return f"{type(estimator).__name__} needs every value, so impute or drop them{use}"


def _where(values: Any, missing: bool, dtype: Any) -> str:
    """How many entries are bad, and where the first is; empty where the values are no numbers."""
    try:
        at, entries = _bad(values, missing, dtype if isinstance(dtype, type) else np.float64)
    except (TypeError, ValueError):
        return ""
    if not len(at):
        return ""
    place = f"row {at[0, 0]}"
    if at.shape[1] > 1:
        columns = list(getattr(values, "columns", ()))
        j = int(at[0, 1])
        place += f", column {columns[j]!r}" if columns else f", column {j}"
    return f" in {len(at)} of {entries} entries, first in {place}"


def _bad(values: Any, missing: bool, dtype: Any) -> tuple[NDArray[np.intp], int]:
    """Indices of the bad entries ``(m, ndim)`` in the order of rows, and the number of entries."""
    with np.errstate(over="ignore"):
        if missing and hasattr(values, "isna"):  # a frame's own mark for it is no number
            gone = np.asarray(values.isna())
            return np.argwhere(gone), gone.size
        if issparse(values):
            kept = values.tocoo()
            wrong = _is(kept.data.astype(dtype), missing)
            at = np.column_stack([kept.row[wrong], kept.col[wrong]])
            return at[np.lexsort((at[:, 1], at[:, 0]))], int(np.prod(values.shape))
        array = np.asarray(values).astype(dtype)
    return np.argwhere(_is(array, missing)), array.size


def _is(values: NDArray[Any], missing: bool) -> NDArray[np.bool_]:
    return np.isnan(values) if missing else np.isinf(values)
