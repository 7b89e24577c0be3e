"""The fitted input layers of ``groundstate.nn`` as a step of a scikit-learn pipeline."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.foreign.sklearn import Interval, StrOptions, check_sample_weight
from groundstate.math.linalg.whitening import METHODS
from groundstate.models.arrays import tensor, unwrap
from groundstate.models.validation import validate_data
from groundstate.nn.blocks.whiten import Center, Standardize, Whiten

KINDS = ("center", "standardize", "whiten")


class InputTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Centre, standardise or whiten columns by what the training rows say.

    .. math:: x - \bar x,\qquad (x_d - \bar x_d)/s_d,\qquad W(x-\bar x)\ \text{with}\ WCW^\top = I

    Moments divide by N. The fitted layer is a torch module, ``layer_``, that can stand before a
    network.

    Parameters
    ----------
    kind : {"center", "standardize", "whiten"}, default="whiten"
    method : {"zca", "pca", "cholesky"}, default="zca"
        Which W, for "whiten".
    eps : float, default=0.0
        Ridge on the covariance C, for "whiten".

    Attributes
    ----------
    layer_ : Center, Standardize or Whiten
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> Z = InputTransformer().fit_transform(load_iris().data)
    >>> bool(np.allclose(np.cov(Z.T, bias=True), np.eye(4)))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions(set(KINDS))],
        "method": [StrOptions(set(METHODS))],
        "eps": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, kind: str = "whiten", method: str = "zca", eps: float = 0.0) -> None:
        self.kind = kind
        self.method = method
        self.eps = eps

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> InputTransformer:
        """Learn from rows ``(n_samples, n_features)``; a weight of 2 is the row twice."""
        self._validate_params()
        X, _ = unwrap(X)
        X = validate_data(
            self, X, dtype=[np.float64, np.float32], order="C",
            ensure_min_samples=2 if self.kind == "whiten" else 1,
        )  # fmt: skip
        rows = tensor(X, torch.device("cpu"))
        weight = None
        if sample_weight is not None:
            sample_weight, _ = unwrap(sample_weight)
            weight = tensor(check_sample_weight(sample_weight, X), rows.device)
        d = X.shape[1]
        made = {
            "center": lambda: Center(d),
            "standardize": lambda: Standardize(d),
            "whiten": lambda: Whiten(d, self.method, self.eps),
        }[self.kind]()
        self.layer_ = made.to(rows.dtype).fit(rows, weight)
        return self

    def transform(self, X: Any) -> Any:
        """Rows in the new coordinates."""
        return self._through(X, inverse=False)

    def inverse_transform(self, X: Any) -> Any:
        """Rows back in the coordinates of the training rows."""
        return self._through(X, inverse=True)

    def _through(self, X: Any, *, inverse: bool) -> Any:
        check_is_fitted(self, "layer_")
        X, home = unwrap(X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        rows = tensor(X, torch.device("cpu"))
        layer = self.layer_ if rows.dtype == self.layer_.mean.dtype else self._cast(rows.dtype)
        return home.give(layer.inverse(rows) if inverse else layer(rows))

    def _cast(self, dtype: torch.dtype) -> Center:
        from copy import deepcopy

        return deepcopy(self.layer_).to(dtype)
