"""Ordinary least squares."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from groundstate.compute.foreign.sklearn import HasMethods, StrOptions
from groundstate.energy.base import Energy
from groundstate.models import settings
from groundstate.models.leverage import least_squares_leverage
from groundstate.models.linear.least_squares.model import LeastSquaresRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor")
class LinearRegression(LeastSquaresRegressor):
    r"""Squared distance to a linear prediction, lowered in closed form.

    .. math:: e(x, y) = \tfrac12\|y - Wx - b\|^2, \qquad \min_{W, b} \sum_i w_i\, e(x_i, y_i) .

    :math:`\int e^{-e}dy` does not depend on θ, so lowering the energy alone is maximum likelihood.
    Where the columns are collinear, the solution of smallest norm is taken. Sparse rows stay sparse;
    ``partial_fit`` learns a table chunk by chunk, exactly.

    Parameters
    ----------
    copy_X, n_jobs
        Accepted for scikit-learn's sake: rows are never overwritten, and threads are torch's.
    tol : float, default=1e-6
        Precision of LSMR, which solves sparse rows with many columns.
    solver : {"auto", "cholesky", "svd", "lsqr", "sgd"} or a solver object, default="auto"
        "auto" factors the Gram matrix while it is well conditioned, else decomposes the rows.

    Attributes
    ----------
    rank_ : int
        Rank of the centred rows, where they were factored.
    singular_ : (min(n_samples, n_features),) array
        Singular values of the centred rows, where they were factored.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LinearRegression
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> model = LinearRegression().fit(X, [1.0, 3.0, 5.0])
    >>> model.coef_.round(6).tolist(), round(model.intercept_, 6)
    ([2.0], 1.0)
    """

    traits = Traits(
        linear_in_y=True,
        leverage=least_squares_leverage,
        space={"fit_intercept": settings.Choice(True, False)},
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions({"auto", "cholesky", "svd", "lsqr", "sgd"}), HasMethods("run")],
    }
    _reports_singular: ClassVar[bool] = True

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: Any = None,
        positive: bool = False,
        solver: Any = "auto",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _learned(self, energy: Energy) -> dict[str, Any]:
        learned = super()._learned(energy)
        extra = self.history_.extra if hasattr(self, "history_") else {}
        if "rank" in extra:
            learned["rank_"] = int(extra["rank"][0])
        if "singular" in extra:
            learned["singular_"] = np.array(extra["singular"])
        return learned
