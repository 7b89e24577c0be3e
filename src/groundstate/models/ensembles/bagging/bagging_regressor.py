"""Bagging of regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from groundstate.models.ensembles.bagging.bags import Bagging
from groundstate.models.ensembles.committees import predict
from groundstate.models.roles import EnergyRegressor
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.registry import models


@models.register(
    family="ensembles", task="regression", role="regressor", max_rows=2_000, auto=False
)
class BaggingRegressor(Bagging, EnergyRegressor):
    r"""The average of members fitted to rows drawn with replacement.

    .. math::
        e(x, y) = \tfrac12\Bigl\|y - \frac1M\sum_{m=1}^M f_m(x)\Bigr\|^2 .

    Members see how often points drawn on the weight line fall on each row, as weights: a weight of
    2 is the row twice, the order of the rows does not matter, and no row is copied. Errors that
    members do not share cancel, so it pays for unstable members such as deep trees.

    Parameters
    ----------
    estimator : regressor of any kind, default=None
        A decision tree unless given. One that takes no weights gets the rows themselves.

    Attributes
    ----------
    oob_prediction_ : (n_samples,) or (n_samples, n_outputs) array, with ``oob_score``
    energy_ : CommitteeMeanEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import BaggingRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> bool(BaggingRegressor(random_state=0).fit(X, y).score(X, y) > 0.98)
    True
    """

    predict = predict

    def _base(self) -> Any:
        return DecisionTreeRegressor()

    def _judge(self, outside: NDArray[Any], y: Any, weight: Any) -> None:
        self.oob_prediction_ = outside[:, 0] if self._flat_target else outside
        seen = ~np.isnan(outside[:, 0])
        truth, w = np.asarray(y)[seen], None if weight is None else np.asarray(weight)[seen]
        if callable(self.oob_score):
            self.oob_score_ = self.oob_score(truth, self.oob_prediction_[seen])
        else:
            self.oob_score_ = float(r2_score(truth, self.oob_prediction_[seen], sample_weight=w))
