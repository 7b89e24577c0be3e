"""The elastic net."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.linear.sparse.members import sparse_members
from groundstate.models.linear.sparse.model import SparseLinearRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class ElasticNet(SparseLinearRegressor):
    r"""Squared distance to a linear prediction, with an L1 and an L2 penalty on the weights.

    .. math::
        e(x, y) = \tfrac12\|y - Wx - b\|^2, \qquad
        \min_{W, b} \frac{1}{\sum_i w_i}\sum_i w_i\, e(x_i, y_i)
        + \alpha\bigl(\rho\|W\|_1 + \tfrac{1-\rho}{2}\|W\|^2\bigr) .

    Outputs are independent problems. Sparse rows stay sparse.

    Parameters
    ----------
    l1_ratio : float in [0, 1], default=0.5
        :math:`\rho`; 1 is the lasso, 0 is ridge regression with ``alpha * n_samples``.
    precompute : bool or (n_features, n_features) array, default=False
        True or a Gram matrix: the whole matrix is computed first, of these rows and weights; False
        decides by cost.
    max_iter : int or None, default=1000
        Passes over the working set at most.
    copy_X, random_state, selection
        Accepted for scikit-learn's sake: rows are never overwritten, and the order of the
        coordinates does not change the solution.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    sparse_coef_ : sparse matrix
    intercept_ : float or (n_targets,)
    dual_gap_ : float or list of them
        Bound on how far the objective is from its minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ElasticNet
    >>> model = ElasticNet(alpha=0.5, l1_ratio=0.5).fit(np.arange(4.0)[:, None], [1.0, 2.0, 2.0, 4.0])
    >>> model.coef_.round(6).tolist(), round(model.intercept_, 6)
    ([0.583333], 1.375)
    """

    traits = Traits(
        program=sparse_members,
        space={"alpha": settings.Real(1e-4, 1e2, log=True), "l1_ratio": settings.Real(0.05, 1.0)},
        steps="max_iter",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "precompute": ["boolean", "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int | None = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        plan = self._penalised(X, y, weight, self.alpha, self.l1_ratio)
        if self.warm_start:
            self._go_on(plan.energy)
        return plan
