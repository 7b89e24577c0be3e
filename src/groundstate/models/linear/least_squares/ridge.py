"""Ridge regression."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from groundstate.compute.foreign.sklearn import HasMethods, Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.models import settings
from groundstate.models.leverage import least_squares_leverage
from groundstate.models.linear.least_squares.model import WAYS, LeastSquaresRegressor
from groundstate.models.linear.least_squares.ridge_members import ridge_members
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(
    family="linear", task="regression", role="regressor", shortlist=1, shortlist_text=1
)
class Ridge(LeastSquaresRegressor):
    r"""Squared distance to a linear prediction with a Gaussian prior on the weights.

    .. math::
        e(x, y) = \tfrac12\|y - Wx - b\|^2, \qquad
        \min_{W, b} \sum_i w_i\, e(x_i, y_i) + \tfrac{\alpha}{2}\|W\|^2 .

    With noise of variance s² and a prior :math:`N(0, \tau^2)` this is the most probable W for
    :math:`\alpha = s^2/\tau^2`. Sparse rows stay sparse; ``partial_fit`` learns a table chunk by
    chunk, exactly.

    Parameters
    ----------
    alpha : float or (n_targets,) array, default=1.0
        Strength of the penalty; the intercept is not penalised.
    copy_X, random_state
        Accepted for scikit-learn's sake: rows are never overwritten, and nothing is random.
    max_iter : int, default=None
        Steps of the iterative solvers at most; epochs of "sgd".
    tol : float, default=1e-4
        Relative residual at which the iterative solvers stop.
    solver : {"auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs", "sgd"} or \
            a solver object, default="auto"
        "auto" factors :math:`X^\top wX + \alpha`, or :math:`XX^\top + \alpha` where there are fewer
        rows than columns; sparse rows with many columns are solved by conjugate gradients. "sag",
        "saga" and "lbfgs" name the same minimum and are solved as "auto".

    Attributes
    ----------
    solver_ : str
        What solved it: "cholesky", "svd", "sparse_cg", "nnls", or ``solver`` as it was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Ridge
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> Ridge(alpha=2.0).fit(X, [1.0, 3.0, 5.0]).coef_.round(6).tolist()
    [1.0]
    """

    traits = Traits(
        program=ridge_members,
        linear_in_y=True,
        leverage=least_squares_leverage,
        strength="alpha",
        space={"alpha": settings.Real(1e-4, 1e4, log=True)},
    )

    _column_is_flat: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({*WAYS, "sgd"}), HasMethods("run")],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: Any = "auto",
        positive: bool = False,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _learned(self, energy: Energy) -> dict[str, Any]:
        logged = self.history_.extra if hasattr(self, "history_") else {}
        way = "sparse_cg" if "steps" in logged else "svd" if "singular" in logged else "cholesky"
        asked = isinstance(self.solver, str) and self.solver != "sgd"
        way = "nnls" if self.positive else way
        return {"solver_": way if asked else getattr(self.solver, "__name__", str(self.solver))}

    def _strength(self, outputs: int) -> Any:
        if np.ndim(self.alpha) == 0:
            return float(self.alpha)
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.shape not in ((1,), (outputs,)) or not (alpha >= 0).all():
            raise ValueError(
                f"alpha must be one number or one for each of the {outputs} targets, none below 0, "
                f"got {self.alpha!r}"
            )
        return float(alpha[0]) if len(alpha) == 1 else alpha
