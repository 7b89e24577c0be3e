"""One estimator fitted many times: folds, resamples, seeds and settings as one program."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier

from groundstate.errors import NotApplicable, ShapeError
from groundstate.models.population.members import F64, Settings, distinct
from groundstate.models.traits import last_step, traits_of
from groundstate.models.weighted import fit_weighted, n_rows, take

_log = logging.getLogger(__name__)


def fit_many(
    estimator: Any,
    X: Any,
    y: Any = None,
    weights: ArrayLike | None = None,
    settings: Sequence[Mapping[str, Any]] | None = None,
) -> list[Any]:
    r"""Fitted clones of an estimator, one for each row of weights and each of the settings.

    .. math:: \theta_p = \arg\min_\theta \sum_i w_{pi}\,\ell(x_i, y_i; \theta, \lambda_p)

    A family that declares a program (``traits.program``) fits all of them with it: batched linear
    algebra, shared kernels and paths, stacked networks; also behind a preparation of columns or at
    the end of a pipeline, whose other steps are fitted to each choice of rows. Others, and cases
    that a program does not take, are fitted one after the other with the same result; the logger
    ``groundstate.models.population.many`` gives the reason at level debug.

    Parameters
    ----------
    estimator : unfitted; it is cloned
    X, y : all rows
    weights : ``(P, N)``, ``(N,)`` or None
        A fold is a row with zeros: rows without weight take no part. A weight of 2 is the row twice.
    settings : P mappings of names to values, as for ``set_params``; seeds are settings too

    Returns
    -------
    list of P fitted clones

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Ridge
    >>> x = np.arange(6.0)[:, None]
    >>> folds = np.ones((2, 6))
    >>> folds[0, :3] = folds[1, 3:] = 0
    >>> models = fit_many(Ridge(alpha=1e-9), x, 2 * x[:, 0], folds)
    >>> [round(float(m.coef_[0]), 6) for m in models]
    [2.0, 2.0]
    >>> [m.alpha for m in fit_many(Ridge(), x, x[:, 0], settings=[{"alpha": 1.0}, {"alpha": 9.0}])]
    [1.0, 9.0]
    """
    table, own = _members(n_rows(X), weights, settings)
    try:
        if len(own) > 1:
            return fit_together(estimator, X, y, table, own)
    except NotApplicable as reason:
        log_reason(estimator, reason)
    rows = [None] * len(own) if table is None else table
    return [_alone(estimator, X, y, w, changes) for w, changes in zip(rows, own, strict=True)]


def fit_together(
    estimator: Any, X: Any, y: Any, weights: F64 | None, settings: Settings
) -> list[Any]:
    """`fit_many` as one program; ``NotApplicable`` with the reason where there is none.

    Parameters
    ----------
    weights : ``(P, N)`` or None
    settings : P mappings
    """
    program = traits_of(estimator).program
    if _learner(estimator) is not estimator:
        from groundstate.models.population.prepared import (
            fit_prepared,  # tables: not for bare arrays
        )

        program = fit_prepared
    if program is None or not has_program(estimator):
        raise NotApplicable(f"{type(_learner(estimator)).__name__} declares no program")
    if weights is not None and y is not None and is_classifier(estimator):
        _check_classes(np.asarray(y), weights)
    return program(estimator, X, y, weights, settings)


def has_program(estimator: Any) -> bool:
    """Whether many fits of an estimator, or of what learns behind a preparation, can be one program."""
    return traits_of(_learner(estimator)).program is not None


def _learner(estimator: Any) -> Any:
    last = last_step(estimator)
    return last.estimator if traits_of(last).prepares else last


def log_reason(estimator: Any, reason: NotApplicable) -> None:
    """Why fits are made one after the other."""
    _log.debug("%s is fitted one by one: %s", type(estimator).__name__, reason)


def _check_classes(y: Any, weights: F64) -> None:
    """A fit knows the classes of its own rows only."""
    if y.ndim != 1:
        return
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise NotApplicable("the labels have no common order") from error
    for row in distinct(weights)[0]:
        if (np.bincount(codes[row > 0], minlength=len(classes)) == 0).any():
            raise NotApplicable("the rows of a member lack a class")


def _members(
    n: int, weights: ArrayLike | None, settings: Sequence[Mapping[str, Any]] | None
) -> tuple[F64 | None, list[Mapping[str, Any]]]:
    """Weights ``(P, N)`` and settings of every member."""
    table = None if weights is None else np.asarray(weights, dtype=np.float64)
    if table is not None and (table.ndim not in (1, 2) or table.shape[-1] != n):
        raise ShapeError(f"weights must be (P, {n}) or ({n},), got {table.shape}")
    size = 1 if settings is None else len(settings)
    if table is not None and table.ndim == 2:
        if settings is not None and len(table) != size:
            raise ShapeError(
                f"there are {size} settings for {len(table)} rows of weights; pass one for each"
            )
        size = len(table)
    own = [{}] * size if settings is None else list(settings)
    return (None if table is None else np.broadcast_to(table, (size, n))), own


def _alone(estimator: Any, X: Any, y: Any, weight: F64 | None, settings: Mapping[str, Any]) -> Any:
    """One fit to the rows that have weight."""
    changes = {k: clone(v) if hasattr(v, "get_params") else v for k, v in settings.items()}
    model = clone(estimator).set_params(**changes)
    if weight is not None and not weight.all():
        rows = np.flatnonzero(weight)
        X, y, weight = take(X, rows), None if y is None else take(y, rows), weight[rows]
    return fit_weighted(model, X, y, weight)
