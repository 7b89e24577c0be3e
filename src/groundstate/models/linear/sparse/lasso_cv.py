"""The lasso with its strength chosen by cross-validation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.models import settings
from groundstate.models.linear.sparse.model import SparseLinearRegressor
from groundstate.models.linear.sparse.path_choice import path_plan
from groundstate.models.linear.sparse.paths import lasso_path
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
    eps : float, default=1e-3
        Smallest alpha of the path, relative to the largest.
    alphas : int or array, default=100
        How many values along the path, or the values themselves.
    fit_intercept : bool, default=True
    precompute : bool, "auto" or (n_features, n_features) array, default="auto"
        True or a Gram matrix computes the whole Gram matrix; otherwise that is decided by cost.
    max_iter : int, default=1000
        Passes over the working set at most, for every alpha.
    tol : float, default=1e-4
        Duality gap at the end, relative to the mean square of the centred target.
    cv : int, splitter, iterable or None, default=None
        How many folds (None is 5) of rows in their order, as in scikit-learn, a splitter, or pairs of
        indices. ``groundstate.evaluate.folds`` gives pairs that keep equal rows together.
    positive : bool, default=False
        Allow no weight below zero.
    random_state, copy_X, verbose, n_jobs, selection
        Accepted for scikit-learn's sake.
    device : str or torch.device, default=None
        Where predictions are computed; the fit itself runs on the CPU.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

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
    n_iter_ : int
    energy_ : SquaredEnergy

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
        "eps": [Interval(Real, 0, None, closed="neither")],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "fit_intercept": ["boolean"],
        "precompute": [StrOptions({"auto"}), "boolean", "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "copy_X": ["boolean"],
        "cv": ["cv_object"],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "selection": [StrOptions({"cyclic", "random"})],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
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
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.device = device
        self.callbacks = callbacks

    path = staticmethod(lasso_path)
