"""A decision tree for values."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.models import settings
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.models.trees.grown import CONSTRAINTS, VALUE_CRITERIA
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
    splitter : {"best", "random", "exact", "hist"}, default="best"
        "best" chooses between "exact" and "hist" by the number of rows.
    max_depth : int or None, default=None
    min_samples_split : int or float, default=2
    min_samples_leaf : int or float, default=1
        Least weight of a node that is split, and of a leaf; fractions are of the whole weight.
    min_weight_fraction_leaf : float, default=0
    max_features : int, float, "sqrt", "log2" or None, default=None
        Columns that are tried per node.
    random_state : int, default=None
        Of ``max_features`` and of random cuts; it never breaks ties.
    max_leaf_nodes : int or None, default=None
        With a limit, the node of largest gain is split first.
    min_impurity_decrease : float, default=0
    ccp_alpha : float, default=0
        Cost per leaf of minimal cost-complexity pruning.
    monotonic_cst : array or None
        +1, −1 or 0 per column: predictions may only rise or fall with it.
    device : str or torch.device, default=None
        Where predictions are computed; trees grow on the CPU.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    tree_ : TreeView
        ``feature``, ``threshold``, ``children_left``, ``children_right``, ``value``, ``impurity``.
    feature_importances_ : (n_features,) array that sums to one
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
        "splitter": [StrOptions({"best", "random", "exact", "hist"})],
        **CONSTRAINTS,
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
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.device = device
        self.callbacks = callbacks
