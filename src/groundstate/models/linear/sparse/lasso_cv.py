"""The lasso with its strength chosen by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.models import settings
from groundstate.models.linear.paths import lasso_path
from groundstate.models.linear.sparse.model import SparseLinearRegressor
from groundstate.models.linear.sparse.path_choice import path_plan
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor")
class LassoCV(SparseLinearRegressor):
    r"""The lasso with its strength chosen by cross-validation.

    .. math::
        \hat\alpha = \arg\min_\alpha \sum_f \frac{1}{w_f}
        \sum_{i \in f} w_i\bigl(y_i - \hat y^{(-f)}_\alpha(x_i)\bigr)^2 , \qquad
        w_f = \sum_{i \in f} w_i .

    All folds share the rows and, where it pays, one Gram matrix, from which the held-out rows are
    subtracted.

    Parameters
    ----------
    precompute : bool, "auto" or (n_features, n_features) array, default="auto"
        True or a Gram matrix computes the whole Gram matrix; otherwise that is decided by cost.
    max_iter : int, default=1000
        Passes over the working set at most, for every alpha.
    random_state, copy_X, verbose, n_jobs, selection
        Accepted for scikit-learn's sake.

    Attributes
    ----------
    alpha_ : float
    alphas_ : (n_alphas,) or (n_l1_ratio, n_alphas) array, the largest first
    mse_path_ : (n_alphas, n_folds) or (n_l1_ratio, n_alphas, n_folds) array
    coef_path_ : (n_features, n_alphas) array
        Weights along the path on all rows, for the chosen mixing.
    dual_gaps_ : (n_alphas,) array
    coef_ : (n_features,) array
    intercept_ : float
    dual_gap_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LassoCV
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> model = LassoCV().fit(X, 3 * X[:, 0] - 2 * X[:, 3])
    >>> np.flatnonzero(model.coef_.round(1)).tolist()
    [0, 3]
    """

    traits = Traits(space={"eps": settings.Real(1e-4, 1e-1, log=True)})

    _multi_output: ClassVar[bool] = False
    _build = path_plan
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "precompute": [StrOptions({"auto"}), "boolean", "array-like"],
    }

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    path = staticmethod(lasso_path)
