"""Extremely random trees for values."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.models.ensembles.forests.model import Forest
from groundstate.models.roles import EnergyRegressor
from groundstate.models.trees.grown import VALUE_CRITERIA
from groundstate.registry import models


@models.register(
    family="ensembles", task="regression", role="regressor", shortlist=6, shortlist_rows=20_000
)
class ExtraTreesRegressor(Forest, EnergyRegressor):
    r"""The average of many decision trees with random cuts.

    .. math::
        e(x, y) = \tfrac12\Bigl\|y - \frac1T\sum_{t=1}^T v_{\ell_t(x)}\Bigr\|^2 .

    Every tree sees all rows and takes, of ``max_features`` random columns with one random cut
    each, the best one. Members are unstable alone and errors that they do not
    share cancel. Draws are points on the weight line: a weight of 2 is the row twice, and neither
    the order of the rows nor ``n_jobs`` changes anything.

    Parameters
    ----------
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson"}
    preset : "breiman" or None
        Breiman's choices: ⌊p/3⌋ columns per node and no cut of fewer than five rows.

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
    oob_prediction_ : (n_samples,) or (n_samples, n_outputs) array, with ``oob_score``
    energy_ : TreeMeanEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ExtraTreesRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> ExtraTreesRegressor(20, random_state=0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.98
    True
    """

    _splitter: ClassVar[str] = "random"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [VALUE_CRITERIA],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        preset: str | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())
