"""What a single tree adds: its view, its size, its pruning path."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.learn.solvers.trees.prune import pruning_path
from groundstate.learn.solvers.trees.solver import GrowTrees
from groundstate.models import settings
from groundstate.models.traits import Traits
from groundstate.models.trees.grown import apply, tree_limits, tree_view, tried_columns
from groundstate.models.trees.inputs import category_sizes
from groundstate.models.trees.model import TreeModel
from groundstate.models.trees.view import TreeView


class SingleTree(TreeModel):
    """One tree on all rows.

    Parameters
    ----------
    splitter : {"best", "random", "exact", "hist"}
        "best" chooses between "exact" and "hist" by the number of rows.
    random_state : int
        Of ``max_features`` and of random cuts; it never breaks ties.
    max_leaf_nodes : int or None
        With a limit, the node of largest gain is split first.
    ccp_alpha : float
        Cost per leaf of minimal cost-complexity pruning.
    monotonic_cst : array or None
        +1, −1 or 0 per column: predictions may only rise or fall with it.

    Attributes
    ----------
    tree_ : TreeView
        ``feature``, ``threshold``, ``children_left``, ``children_right``, ``value``, ``impurity``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "splitter": [StrOptions({"best", "random", "exact", "hist"})],
    }

    traits = Traits(
        single_columns=True,
        space={
            "criterion": settings.Choice("gini", "entropy"),
            "max_depth": settings.Whole(1, 20, log=True),
            "min_samples_leaf": settings.Whole(1, 50, log=True),
            "ccp_alpha": settings.Real(1e-6, 1e-1, log=True),
        },
    )

    splitter: str
    ccp_alpha: float

    def _solver(self, X: Tensor, weight: Tensor | None) -> GrowTrees:
        return GrowTrees(
            tree_limits(self, X, weight, self.splitter),
            categories=category_sizes(self, X.shape[1]),
            prune=self.ccp_alpha,
            threads=1,
        )

    @property
    def tree_(self) -> TreeView:
        """The tree as flat arrays."""
        check_is_fitted(self, "energy_")
        return tree_view(self, 0).read_only()

    @property
    def max_features_(self) -> int:
        """Columns tried per node."""
        check_is_fitted(self, "energy_")
        return tried_columns(self, self.n_features_in_) or self.n_features_in_

    def apply(self, X: Any) -> Any:
        """Number of the leaf of each row, ``(n_samples,)``."""
        return apply(self, X)[:, 0]

    def get_depth(self) -> int:
        """The longest path from root to leaf, in edges."""
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """How many leaves there are."""
        return self.tree_.n_leaves

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Values of ``ccp_alpha`` at which branches fall, and the leaf impurity after each."""
        from sklearn.base import clone

        full = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        alphas, impurities, _ = pruning_path(full.energy_.nodes.tree(0))
        # branches that fall at the same cost are one step
        last = [k for k in range(len(alphas)) if k + 1 == len(alphas) or alphas[k + 1] > alphas[k]]
        return Bunch(ccp_alphas=alphas[last], impurities=impurities[last])
