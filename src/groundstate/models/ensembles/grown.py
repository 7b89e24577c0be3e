"""Decision trees as members without a detour: one sorted table, energies that are averaged as such."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from torch import Tensor

from groundstate.energy.trees.leaves import TreeClassEnergy, TreeMeanEnergy
from groundstate.learn.solvers.committee import Member
from groundstate.learn.solvers.trees.member import GrownMember
from groundstate.models.ensembles.member import member
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.models.trees.grown import tree_limits


def fits(base: Any, k: int | None, X: Tensor, weight: Tensor | None, whole: bool = True) -> Member:
    """How a committee fits ``base``; plain decision trees share the table that they cut.

    ``whole`` says that members see all columns.
    """
    kind = DecisionTreeRegressor if k is None else DecisionTreeClassifier
    alike = type(base) is kind
    shares = alike and (
        isinstance(base.min_samples_split, Integral)
        and isinstance(base.min_samples_leaf, Integral)
        and (whole or base.max_features is None)
        and base.ccp_alpha == 0
        and base.monotonic_cst is None
        and getattr(base, "class_weight", None) is None
        and base.device is None
    )
    if not shares:
        return member(base, k)
    base._validate_params()
    w = np.ones(len(X)) if weight is None else weight.double().cpu().numpy()
    return GrownMember(tree_limits(base, X, weight, base.splitter), None, w)


def estimator_of(energy: Any, base: Any) -> Any:
    """A member's energy as the fitted estimator it stands for."""
    if not isinstance(energy, TreeClassEnergy | TreeMeanEnergy):
        return energy.estimator
    model = clone(base)
    model.energy_, model.n_features_in_, model._levels = energy, energy.d, {}
    if isinstance(energy, TreeClassEnergy):
        model.classes_ = np.arange(energy.k)
    else:
        model._flat_target = energy.m == 1
    return model
