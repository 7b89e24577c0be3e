r"""Leave-one-out from one fit, for models whose fit is linear in y.

With :math:`\hat y = Sy` the prediction of row i without row i is off by
:math:`e_i/(1 - S_{ii})`, exactly, so n fits are one.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, NotApplicable, Unreliable
from groundstate.evaluate.scores import Scores
from groundstate.models.traits import traits_of

Floats = NDArray[np.float64]
_MANY = 1000
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaveOneOut(Displayed):
    r"""What leaving each row out once found.

    Attributes
    ----------
    errors : (n,)
        Truth minus the prediction without that row.
    predictions : (n,)
    mse : float
        Mean squared error of them.
    train_mse : float
        Of the fit on its own rows.
    gcv : float or None
        Generalised cross-validation, :math:`\frac1n\sum e_i^2/(1-\mathrm{tr}S/n)^2`.
    leverage : (n,) or None
        :math:`S_{ii}`.
    method : ``"exact"`` from one fit, or ``"refits"``
    """

    errors: Floats = field(repr=False)
    predictions: Floats = field(repr=False)
    mse: float
    train_mse: float
    gcv: float | None
    leverage: Floats | None = field(repr=False)
    method: str

    @property
    def scores(self) -> Scores:
        """Squared errors, one per row."""
        return Scores(self.errors**2, ("test",), "squared error", greater_is_better=False)

    def __str__(self) -> str:
        return str(self.scores)


def loo(estimator: Any, X: Any, y: Any) -> LeaveOneOut:
    """Leave-one-out errors of a regressor: exact from one fit where it is linear in y.

    Models that declare their leverages take the short way: ordinary least squares, ridge, kernel
    ridge, the mean of a Gaussian process (at its learned kernel) and smoothing splines of given λ.
    All others, other libraries' too, are fitted n times, with a warning above 1,000 rows. Nearest
    neighbours are not linear smoothers of the right kind: the short way would score k − 1 neighbours.

    Examples
    --------
    >>> from groundstate import LinearRegression
    >>> found = loo(LinearRegression(), [[1], [2], [3], [4]], [1, 2, 2, 4])
    >>> round(found.mse, 6), round(found.train_mse, 6), round(found.gcv, 6)
    (0.74263, 0.175, 0.7)
    """
    from sklearn.base import clone

    target = np.asarray(y, np.float64)
    if target.ndim != 1 or len(target) < 3:
        raise DataError(f"leave-one-out needs one number per row, three rows, got {target.shape}")
    leverage_of = traits_of(estimator).leverage
    if leverage_of is None:
        return _refits(estimator, X, target)
    model = clone(estimator).fit(X, target)
    left = target - np.asarray(model.predict(X), np.float64).reshape(-1)
    try:
        leverage = leverage_of(model, X)
        if (leverage > 1 - 1e-10).any():
            raise NotApplicable("a row that only itself explains")
    except NotApplicable as reason:
        _log.debug("%s is fitted without every row: %s", type(estimator).__name__, reason)
        return _refits(estimator, X, target)
    errors = left / (1 - leverage)
    shrunk = 1 - float(leverage.sum()) / len(target)
    train = float(np.square(left).mean())
    return LeaveOneOut(errors, target - errors, float(np.square(errors).mean()), train,
                       train / shrunk**2, leverage, "exact")  # fmt: skip


def _refits(estimator: Any, X: Any, y: Floats) -> LeaveOneOut:
    from sklearn.base import clone
    from sklearn.model_selection import LeaveOneOut as Splitter
    from sklearn.model_selection import cross_val_predict

    if len(y) > _MANY:
        warnings.warn(
            f"{type(estimator).__name__} has no short way, so it is fitted {len(y)} times; "
            "cross_validate(cv=10) is nearly as good",
            Unreliable,
            stacklevel=3,
        )
    predicted = np.asarray(cross_val_predict(estimator, X, y, cv=Splitter()), np.float64).reshape(
        -1
    )
    own = np.asarray(clone(estimator).fit(X, y).predict(X), np.float64).reshape(-1)
    errors = y - predicted
    return LeaveOneOut(errors, predicted, float(np.square(errors).mean()),
                       float(np.square(y - own).mean()), None, None, "refits")  # fmt: skip
