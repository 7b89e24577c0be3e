"""A random forest for classes."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.models.ensembles.forests.model import Forest
from groundstate.models.roles import EnergyClassifier
from groundstate.models.traits import Traits
from groundstate.models.trees.grown import CLASS_CRITERIA
from groundstate.registry import models


@models.register(
    family="ensembles", task="classification", role="classifier", shortlist=3, shortlist_rows=20_000
)
class RandomForestClassifier(Forest, EnergyClassifier):
    r"""The average of many decision trees.

    .. math::
        e(x, y) = -\log \frac1T \sum_{t=1}^T p_{\ell_t(x)}(y) .

    Every tree is grown on rows drawn with replacement, and every node chooses among
    ``max_features`` random columns. Members are unstable alone and errors that they do not
    share cancel. Draws are points on the weight line: a weight of 2 is the row twice, and neither
    the order of the rows nor ``n_jobs`` changes anything.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}
    preset : "breiman" or None
        Breiman's choices: ⌊√p⌋ columns per node.

    Attributes
    ----------
    estimators_ : list of DecisionTreeClassifier
    oob_decision_function_ : (n_samples, n_classes) array, with ``oob_score``
    energy_ : TreeClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> RandomForestClassifier(20, random_state=0).fit(X, y).score(X, y) > 0.98
    True
    """

    _splitter: ClassVar[str] = "best"
    # leaves of single rows are certain, and log loss and Brier's score mind that
    traits = Traits(preset={"min_samples_leaf": 3})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [CLASS_CRITERIA],
        "class_weight": [dict, list, StrOptions({"balanced", "balanced_subsample"}), None],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        preset: str | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())
