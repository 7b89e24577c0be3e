"""What the two gradient boosters share: trees or other members, stages, early stopping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import HasMethods, Interval, StrOptions
from groundstate.energy.trees.leaves import TreeMeanEnergy
from groundstate.energy.trees.nodes import Tree
from groundstate.learn.solvers.boosting.functional import GradientBooster
from groundstate.learn.solvers.boosting.pieces import Base, MemberBase, TreeBase
from groundstate.models import settings
from groundstate.models.base import EnergyEstimator
from groundstate.models.ensembles.member import member
from groundstate.models.ensembles.sequence import each_member, member_at
from groundstate.models.tables.categories import Categories
from groundstate.models.traits import Traits
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.models.trees.grown import CONSTRAINTS as TREE
from groundstate.models.trees.grown import (
    VALUE_CRITERIA,
    apply,
    decision_path,
    importances,
    tree_limits,
    tried_columns,
)
from groundstate.models.trees.inputs import category_sizes


class FunctionalBooster(EnergyEstimator):
    r"""An additive energy, member by member.

    Parameters
    ----------
    learning_rate : float
        ν.
    n_estimators : int
        Steps.
    subsample : float
        Share of the weight that a step sees, drawn on the weight line without replacement.
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson"}
    min_samples_split : int or float
    min_samples_leaf : int or float
    min_weight_fraction_leaf : float
    max_depth : int or None
    min_impurity_decrease : float
        Limits of a tree, as in ``DecisionTreeRegressor``.
    max_features : int, float, "sqrt", "log2" or None
        Columns that are tried per node.
    max_leaf_nodes : int or None
    warm_start : bool
        Go on from the last fit.
    validation_fraction : float
        Share of the weight that is held out where ``n_iter_no_change`` is given.
    n_iter_no_change : int or None
        Stop when the held-out loss is lower than none of so many before it.
    tol : float
        Least improvement for that.
    ccp_alpha : float
    estimator : regressor of any kind
        Fits h in the place of a tree with the limits above.
    line_search : {"leaf", "exact", "none"}
        The best constant of every leaf (one Newton step for classes), one :math:`\gamma \ge 0` for
        all rows, or γ = 1. Members that are no trees need one of the latter two.
    device : str or torch.device
        Where to predict; None is where X is.

    Attributes
    ----------
    train_score_ : (n_estimators_,) array, loss of the rows that a step saw
    init_ : the fitted ``init``, or the scores that are the start
    feature_importances_ : (n_features,) array that sums to one, for trees
    estimators_ : (n_estimators_, n_scores) array of members
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in TREE.items() if name != "monotonic_cst"},
        "criterion": [VALUE_CRITERIA],
        "learning_rate": [Interval(Real, 0, None, closed="left")],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "init": [StrOptions({"zero"}), None, HasMethods(["fit", "predict"])],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
        "line_search": [StrOptions({"leaf", "exact", "none"})],
    }

    __getitem__, __iter__ = member_at, each_member

    traits = Traits(
        single_columns=True,
        summed=True,
        steps="n_estimators",
        counts_all_steps=True,
        space={
            "learning_rate": settings.Real(0.01, 0.5, log=True),
            "n_estimators": settings.Whole(20, 500, log=True),
            "max_depth": settings.Whole(1, 8),
            "subsample": settings.Real(0.4, 1.0),
            "min_samples_leaf": settings.Whole(1, 50, log=True),
        },
    )

    loss: Any
    learning_rate: float
    n_estimators: int
    subsample: float
    init: Any
    warm_start: bool
    validation_fraction: float
    n_iter_no_change: int | None
    tol: float
    estimator: Any
    line_search: Any
    criterion: str
    max_depth: int | None
    max_features: Any
    ccp_alpha: float
    energy_: Any
    _categories: ClassVar[Any] = Categories()
    _allow_nan: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = "dense"
    _runs_on: Any = "answers"  # trees grow on the CPU
    apply = apply
    decision_path = decision_path

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        for own in (self.estimator, self.init):
            if own is not None and not isinstance(own, str):
                tags.input_tags.allow_nan &= bool(get_tags(own).input_tags.allow_nan)
        return tags

    def _booster(self, X: Tensor, weight: Tensor | None, k: int | None) -> GradientBooster:
        base: Any = self.estimator
        make: Any
        if base is None or type(base) is DecisionTreeRegressor:
            model: Any = self if base is None else base
            make = partial(_trees, tree_limits(model, X, weight, "best"),
                           category_sizes(self, X.shape[1]), model.ccp_alpha)  # fmt: skip
        else:
            make = partial(_members, base)
        return GradientBooster(
            make,
            self.n_estimators,
            self.learning_rate,
            self.line_search,
            self.subsample,
            self.n_iter_no_change,
            self.validation_fraction,
            self.tol / self._factor(),  # in the deviance that is reported
            isinstance(self.init, str),
            None if self.init is None or isinstance(self.init, str) else member(self.init, k),
            self.warm_start,
        )

    def _learned(self, energy: Any) -> dict[str, Any]:
        seen = self.history_.extra if hasattr(self, "history_") else {}
        scale = self._factor()
        out: dict[str, Any] = {
            "train_score_": scale * np.array(seen.get("train", [])),
            "n_estimators_": (_size(energy.nodes) + len(energy.members)) // len(energy.b),
            "max_features_": tried_columns(self, self.n_features_in_) or self.n_features_in_,
        }
        if "outside" in seen:
            after = scale * np.array(seen["outside"])
            before = scale * np.array(seen["outside_before"])
            out |= {"oob_scores_": after, "oob_score_": float(after[-1]),
                    "oob_improvement_": before - after}  # fmt: skip
        return out

    def _steps_done(self, energy: Any) -> int:
        return int((_size(energy.nodes) + len(energy.members)) // len(energy.b))

    def _factor(self) -> float:
        """From the mean loss to the deviance that is reported."""
        return 1.0

    @property
    def init_(self) -> Any:
        """What the sum starts from: the fitted ``init``, or constant scores."""
        check_is_fitted(self, "energy_")
        e = self.energy_
        return e.b.detach().cpu().double().numpy() if e.first is None else e.first.estimator

    @property
    def n_trees_per_iteration_(self) -> int:
        """Members of one step: one, or one per class."""
        check_is_fitted(self, "energy_")
        return len(self.energy_.b)

    @property
    def estimators_(self) -> NDArray[Any]:
        """The members by step and score, ``(n_estimators_, n_scores)``."""
        e = self.energy_
        found = [self._tree(e.nodes.tree(t)) for t in range(_size(e.nodes))]
        found += [one.estimator for one in e.members]
        out = np.empty(len(found), object)
        out[:] = found
        return out.reshape(-1, len(e.b))

    def _tree(self, tree: Tree) -> DecisionTreeRegressor:
        model = DecisionTreeRegressor(max_depth=self.max_depth)
        energy = TreeMeanEnergy(self.n_features_in_).to(*self.energy_.placement())
        scaled = tree.value / (self.learning_rate or 1.0)
        energy.nodes.set([replace(tree, value=scaled, column=-1)])
        model.energy_, model.n_features_in_ = energy, self.n_features_in_
        model._levels, model._flat_target = self._levels, True
        return model

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Fall of the squared error of the steps by column; sums to one."""
        return importances(self, _size(self.energy_.nodes), normalize=False)

    def _staged(self, X: Any) -> Iterator[tuple[Tensor, Any]]:
        """Scores after every step."""
        x, home = self._rows(X)
        e = self.energy_
        k, trees = len(e.b), _size(e.nodes)
        with torch.no_grad():
            F = e.starts(x).clone()
            leaves = e.nodes.apply_rows(x)
            for t in range(0, trees, k):
                for c in range(k):
                    F[:, c] += e.nodes.value[leaves[:, t + c], 0]
                yield F.clone(), home
            for m in range(0, len(e.members), k):
                for c in range(k):
                    F[:, c] += e.a[m + c] * e.member_value(m + c, x)[:, 0]
                yield F.clone(), home


def _size(nodes: Any) -> int:
    """Number of trees that count; an empty sum holds one leaf of nobody."""
    return 0 if int(nodes.column[0]) < 0 else int(nodes.n_trees)


def _trees(limits: Any, sizes: Any, alpha: float, kept: list[Tree]) -> Base:
    return TreeBase(limits, sizes, kept, alpha)


def _members(base: Any, kept: list[Tree]) -> Base:
    return MemberBase(member(base, None))
