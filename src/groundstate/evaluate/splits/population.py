"""Fits of one recipe to many choices of rows and seeds, as one program where the model has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import NotApplicable
from groundstate.evaluate.rows import Floats, n_rows, take
from groundstate.models.population.many import fit_together

_NUMBERS = 2**26  # weights held at once: members times rows


def fit_rows(
    estimator: Any,
    X: Any,
    y: Any,
    rows: Sequence[NDArray[np.intp]],
    settings: Sequence[Mapping[str, Any]] | None = None,
    weight: Floats | None = None,
) -> list[Any]:
    r"""Clones fitted to ``X[rows[p]], y[rows[p]]`` for every p, as one program.

    Member p minimises :math:`\sum_i w_i m_{pi} L_i`, with :math:`m_{pi}` how often row i is among its
    rows; the result is that of fits one after the other. ``NotApplicable`` says why there is none.

    Parameters
    ----------
    estimator : unfitted; also behind a preparation, or at the end of a pipeline
    X, y : all rows
    rows : P choices of rows; a row that is there twice counts twice
    settings : of each member, as for ``set_params``
    weight : ``(N,)``, multiplies

    Examples
    --------
    >>> from groundstate import Ridge
    >>> x = np.arange(6.0)[:, None]
    >>> models = fit_rows(Ridge(1e-9), x, 2 * x[:, 0], [np.arange(3), np.arange(3, 6)])
    >>> [round(float(model.coef_[0]), 6) for model in models]
    [2.0, 2.0]
    """
    if len(rows) < 2 or y is None:
        raise NotApplicable("one fit is no population, and members need a target")
    own = [{}] * len(rows) if settings is None else list(settings)
    target, n = np.asarray(y), n_rows(X)
    same = weight is None and all(r is rows[0] for r in rows)
    if same:  # other seeds on the same rows need no weights
        X, target = take(X, rows[0]), target[rows[0]]
    models: list[Any] = []
    size = max(1, _NUMBERS // max(1, n))  # as many at a time as their weights have room
    for at in range(0, len(rows), size):
        chosen = slice(at, at + size)
        counts: Floats | None = None
        if not same:
            counts = np.stack([np.bincount(r, minlength=n) for r in rows[chosen]]).astype(float)
            counts = counts if weight is None else counts * weight
        models += fit_together(estimator, X, target, counts, own[chosen])
    return models
