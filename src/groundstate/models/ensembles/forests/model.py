"""What forests add: bootstrap rows, out-of-bag answers, and their trees as estimators."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import is_classifier
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.learn.solvers.trees.classes import WeighClasses
from groundstate.learn.solvers.trees.solver import GrowTrees
from groundstate.models import settings
from groundstate.models.ensembles.forests.out_of_bag import judge_labels, judge_values
from groundstate.models.ensembles.sequence import each_member, member_at
from groundstate.models.traits import Cost, Traits
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.models.trees.grown import decision_path, tree_limits
from groundstate.models.trees.inputs import category_sizes, row_factors
from groundstate.models.trees.model import TreeModel

EXACT_ROWS = 2_000  # members differ by more than cuts between neighbours: bins above this
SHARED = ("criterion", "max_depth", "min_samples_split", "min_samples_leaf",
          "min_weight_fraction_leaf", "max_features", "max_leaf_nodes", "min_impurity_decrease",
          "ccp_alpha", "monotonic_cst")  # fmt: skip


class Forest(TreeModel):
    """Many trees on weighted copies of the rows; the energy averages them.

    Parameters
    ----------
    n_estimators : int
    max_leaf_nodes : int or None
    bootstrap : bool
    oob_score : bool or callable
        Judge every row by the trees that did not see it.
    n_jobs : int or None
        Threads; None takes all that torch uses.
    warm_start : bool
        Keep the trees of the last fit and add what is missing.
    class_weight : dict, list of dicts, "balanced", "balanced_subsample" or None
        What a row of a class counts in its trees; "balanced_subsample" balances every draw by
        itself. Draws, ``min_samples_split`` and ``min_samples_leaf`` are of rows, without it.
    ccp_alpha : float
    max_samples : int, float or None
        Rows drawn per tree; None draws as many as there are.
    monotonic_cst : array or None

    Attributes
    ----------
    oob_score_ : float, with ``oob_score``
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "oob_score": ["boolean", callable],
        "max_samples": [
            None,
            Interval(Real, 0.0, 1.0, closed="right"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "preset": [StrOptions({"breiman"}), None],
    }

    __getitem__, __iter__ = member_at, each_member

    traits = Traits(
        single_columns=True,
        cost=Cost(0.1, rows=1.15, columns=0.3, classes=0.4),
        space={
            "max_features": settings.Real(0.1, 1.0),
            "min_samples_leaf": settings.Whole(1, 20, log=True),
        },
        steps="n_estimators",
        counts_all_steps=True,
    )

    n_estimators: int
    bootstrap: bool
    oob_score: Any
    n_jobs: int | None
    max_samples: Any
    warm_start: bool
    classes_: Any
    _splitter: ClassVar[str] = "best"

    def _solver(self, X: Tensor, weight: Tensor | None) -> GrowTrees:
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score needs bootstrap=True: otherwise every tree sees every row")
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError("max_samples needs bootstrap=True")
        total = len(X) if weight is None else float(weight.sum())
        draws = None if self.max_samples is None else int(self._drawn(total))
        return GrowTrees(
            replace(
                tree_limits(self, X, weight, self._splitter, self._drawn), exact_rows=EXACT_ROWS
            ),
            self.n_estimators,
            self.bootstrap,
            draws,
            category_sizes(self, X.shape[1]),
            self.ccp_alpha,
            bool(self.oob_score),
            self.warm_start,
            None if self.n_jobs is None else effective_n_jobs(self.n_jobs),
        )

    def _drawn(self, total: float) -> float:
        share = self.max_samples
        if share is None or isinstance(share, Integral):
            return total if share is None else float(share)
        return float(max(1, round(share * total)))

    @property
    def _draws_rows(self) -> bool:
        return self.bootstrap

    def _weighed(self, solver: GrowTrees, y: Tensor, weight: Tensor | None) -> GrowTrees:
        balance = getattr(self, "class_weight", None)
        if balance is None or not self.bootstrap:
            return solver
        factor = None
        if balance != "balanced_subsample":
            factor = row_factors(balance, self.classes_, y, weight)
        return WeighClasses(**vars(solver), labels=y.cpu().numpy(), factor=factor)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        super()._fit(X, y, sample_weight)
        outside = self.history_.extra.pop("out_of_bag", None)
        if outside is not None:
            judge = judge_labels if is_classifier(self) else judge_values
            judge(self, np.asarray(outside), y, sample_weight)
        return self

    @property
    def estimators_(self) -> list[Any]:
        """The trees as fitted single trees of their own."""
        return [self._member(t) for t in range(self.energy_.nodes.n_trees)]

    def _member(self, t: int) -> Any:
        model = self.estimator_
        energy = type(self.energy_)(**self.energy_.config() | {"nodes": None})
        energy.to(*self.energy_.placement()).nodes.set([self.energy_.nodes.tree(t)])
        for name in (
            "n_features_in_",
            "_levels",
            "classes_" if is_classifier(self) else "_flat_target",
        ):
            setattr(model, name, getattr(self, name))
        model.energy_ = energy
        return model

    @property
    def estimator_(self) -> Any:
        """A single tree with the settings of the members."""
        own = self.get_params(deep=False)
        splitter = "random" if self._splitter == "random" else "best"
        tree = DecisionTreeClassifier if is_classifier(self) else DecisionTreeRegressor
        return tree(splitter=splitter, **{name: own[name] for name in SHARED})

    def decision_path(self, X: Any) -> tuple[Any, NDArray[np.int64]]:
        """Which nodes of all trees each row passes, and where the nodes of a tree begin.

        A sparse ``(n_samples, n_nodes)`` of zeros and ones, and ``(n_estimators + 1,)`` columns.
        """
        path = decision_path(self, X)
        return path, self.energy_.nodes.start.cpu().numpy().astype(np.int64)

    def __len__(self) -> int:
        return int(self.energy_.nodes.n_trees)
