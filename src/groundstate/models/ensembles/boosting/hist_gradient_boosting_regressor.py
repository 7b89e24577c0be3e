"""Boosted trees for values."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.trees.boosted import LOSSES, BoostedEnergy
from groundstate.learn import Naive
from groundstate.models.base import Plan
from groundstate.models.ensembles.boosting.histogram import HistogramBooster
from groundstate.models.roles import EnergyRegressor
from groundstate.models.trees.inputs import started
from groundstate.registry import models


@models.register(
    family="ensembles", task="regression", role="regressor", shortlist=2, shortlist_text=4
)
class HistGradientBoostingRegressor(HistogramBooster, EnergyRegressor):
    r"""A sum of small trees, grown on histograms of gradients.

    .. math::
        e(x, y) = \tfrac12 D(y, \mu(F(x))), \qquad F = b + \nu\sum_t v_{\ell_t(x)}, \qquad
        v_\ell = -\frac{G_\ell}{H_\ell + \lambda},

    where G and H are sums over a leaf of the first and second derivatives of e in F. For the
    absolute error and quantiles, leaves hold the median or quantile of the residuals. Missing
    values go to the better side of every cut.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "gamma", "poisson", "quantile"}
    quantile : float, default=None
        Which quantile, for ``loss="quantile"``.

    Attributes
    ----------
    train_score_, validation_score_ : (n_iter_ + 1,) arrays, where early stopping watched
    energy_ : BoostedEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import HistGradientBoostingRegressor
    >>> X = np.arange(40.0)[:, None]
    >>> model = HistGradientBoostingRegressor(max_leaf_nodes=2).fit(X, X[:, 0] > 19)
    >>> model.predict([[3.0], [30.0]]).round(3).tolist()
    [0.0, 1.0]
    """

    _multi_output: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES))],
        "quantile": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        quantile: float | None = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        goss: Any = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        least = float(y.min())
        if (self.loss == "gamma" and least <= 0) or (self.loss == "poisson" and least < 0):
            kind = "positive" if self.loss == "gamma" else "non-negative"
            raise ValueError(f"loss={self.loss!r} needs {kind} y; the smallest is {least}")
        if self.loss == "quantile" and self.quantile is None:
            raise ValueError("loss='quantile' needs quantile=, a number between 0 and 1")
        energy = started(
            self, BoostedEnergy(X.shape[1], self.loss, self.quantile or 0.5), self._steps_done
        )
        return Plan(energy, Naive(), self._solver(energy, X, y, weight))

    def _shown(self, y: NDArray[Any]) -> NDArray[Any]:
        return y[:, 0]

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """`predict` after every step."""
        for raw, home in self._staged(X):
            yield home.give((raw.exp() if self.energy_.log_link else raw)[:, 0])
