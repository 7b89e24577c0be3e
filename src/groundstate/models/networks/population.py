"""Fits of one estimator on many weights and settings at once: folds, grids, seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from groundstate.errors import ShapeError
from groundstate.models.base import EnergyEstimator
from groundstate.models.networks.population_members import fit_members

if TYPE_CHECKING:
    _Base = EnergyEstimator
else:
    _Base = object


class PopulationMixin(_Base):
    """An estimator whose ``_build`` plans a ``NetworkTraining``, fitted many at a time.

    ``_fit_population`` gives what as many clones would give with ``fit``, trained as one program;
    None where the settings ask for something that members cannot do side by side, and the caller
    fits them one after the other (`population_folds` does both).
    """

    def _fit_population(
        self,
        X: Any,
        y: Any,
        weights: ArrayLike | None = None,
        params: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[Self] | None:
        """Fitted clones, one for each row of weights ``(P, N)`` and each entry of params."""
        rows, own = _pairs(X, weights, params)
        return fit_members(self, X, y, rows, own)


def population_folds(
    estimator: Any,
    X: Any,
    y: Any,
    weights: ArrayLike | None = None,
    params: Sequence[Mapping[str, Any]] | None = None,
) -> list[Any]:
    r"""Clones of an estimator fitted to many weightings of the rows and with many settings.

    Member p minimises :math:`\sum_i w_{pi} L_i` with its own settings. Estimators that can train side
    by side do so; others are fitted one after the other, with the same result.

    Parameters
    ----------
    estimator : takes ``sample_weight`` where weights are given
    X, y : all rows
    weights : ``(P, N)``, ``(N,)`` or None; a fold is a row with zeros
    params : P settings by name, or None

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
    >>> models = population_folds(Ridge(alpha=1e-9), x, 2 * x[:, 0], folds)
    >>> [round(float(m.coef_[0]), 6) for m in models]
    [2.0, 2.0]
    """
    together = getattr(estimator, "_fit_population", None)
    found: list[Any] | None = None if together is None else together(X, y, weights, params)
    if found is not None:
        return found
    rows, own = _pairs(X, weights, params)
    return [
        clone(estimator)
        .set_params(**changes)
        .fit(X, y, **({} if w is None else {"sample_weight": w}))
        for w, changes in zip(rows, own, strict=True)
    ]


def _pairs(
    X: Any, weights: ArrayLike | None, params: Sequence[Mapping[str, Any]] | None
) -> tuple[list[NDArray[Any] | None], list[Mapping[str, Any]]]:
    """Weights and settings of every member."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    table = None if weights is None else np.asarray(weights, dtype=np.float64)
    if table is not None and (table.ndim not in (1, 2) or table.shape[-1] != n):
        raise ShapeError(f"weights must be (P, {n}) or ({n},), got {table.shape}")
    sizes = {len(params)} if params is not None else set()
    sizes |= {len(table)} if table is not None and table.ndim == 2 else set()
    if len(sizes) > 1:
        raise ShapeError(
            f"there are {len(params or ())} settings for {0 if table is None else len(table)} rows of "
            "weights; pass one for each"
        )
    (size,) = sizes or {1}
    rows: list[NDArray[Any] | None] = [None] * size
    if table is not None:
        rows = list(table) if table.ndim == 2 else [table] * size
    return rows, [{}] * size if params is None else list(params)


__all__ = ["PopulationMixin", "population_folds"]
