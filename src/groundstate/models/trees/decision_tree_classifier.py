"""A decision tree for classes."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.models.roles import EnergyClassifier
from groundstate.models.trees.grown import CLASS_CRITERIA
from groundstate.models.trees.single import SingleTree
from groundstate.registry import models


@models.register(family="trees", task="classification", role="classifier")
class DecisionTreeClassifier(SingleTree, EnergyClassifier):
    r"""Class shares in boxes, found by cutting one column at a time.

    .. math::
        e(x, y) = -\log p_{\ell(x)}(y), \qquad p_\ell(y) = \frac{\sum_{i \in \ell} w_i 1[y_i = y]}
        {\sum_{i \in \ell} w_i},

    where the box :math:`\ell(x)` is a leaf of a tree that is grown greedily: every node takes the
    cut :math:`x_j \le t` that lowers the impurity of its rows most. Up to 10,000 rows all cuts
    between two values are tried, beyond that 255 bins per column. NaN goes to the better side;
    columns of category dtype are cut into the best two sets of levels.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}
    class_weight : dict, list of dicts, "balanced" or None
        What a row of a class counts; one dict per output. ``min_samples_split`` and
        ``min_samples_leaf`` are of rows, without it.

    Attributes
    ----------
    energy_ : TreeClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> model.get_n_leaves(), round(model.score(X, y), 3)
    (3, 0.96)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [CLASS_CRITERIA],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())
