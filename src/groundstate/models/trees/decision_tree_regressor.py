"""A decision tree for values."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.models import settings
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.models.trees.grown import VALUE_CRITERIA
from groundstate.models.trees.single import SingleTree
from groundstate.registry import models


@models.register(family="trees", task="regression", role="regressor")
class DecisionTreeRegressor(SingleTree, EnergyRegressor):
    r"""Means in boxes, found by cutting one column at a time.

    .. math::
        e(x, y) = \tfrac12\|y - v_{\ell(x)}\|^2, \qquad
        v_\ell = \frac{\sum_{i \in \ell} w_i y_i}{\sum_{i \in \ell} w_i},

    where the box :math:`\ell(x)` is a leaf of a tree that is grown greedily: every node takes the
    cut :math:`x_j \le t` that lowers the impurity of its rows most. Up to 10,000 rows all cuts
    between two values are tried, beyond that 255 bins per column. NaN goes to the better side;
    columns of category dtype are cut into the best two sets of levels.

    Parameters
    ----------
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson"}

    Attributes
    ----------
    energy_ : TreeMeanEnergy

    Examples
    --------
    >>> from groundstate import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor(max_depth=1).fit([[0], [1], [2], [3]], [1.0, 2.0, 2.0, 4.0])
    >>> float(model.tree_.threshold[0]), model.predict([[0], [3]]).round(4).tolist()
    (2.5, [1.6667, 4.0])
    """

    traits = Traits(
        space={
            "max_depth": settings.Whole(1, 20, log=True),
            "min_samples_leaf": settings.Whole(1, 50, log=True),
            "ccp_alpha": settings.Real(1e-6, 1e-1, log=True),
        },
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [VALUE_CRITERIA],
    }

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())
