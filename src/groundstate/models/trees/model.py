"""Trees and forests for classes (of one label or several) and for values."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.energy.trees.leaves import TreeClassEnergy, TreeMeanEnergy
from groundstate.energy.trees.nodes import TreeNodes
from groundstate.energy.trees.outputs import TreeOutputsEnergy
from groundstate.learn import Naive, SoftMin
from groundstate.learn.solvers.trees.classes import GrowOutputs
from groundstate.learn.solvers.trees.solver import GrowTrees
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.tables.categories import Categories
from groundstate.models.trees.grown import CONSTRAINTS, apply, decision_path, importances
from groundstate.models.trees.inputs import row_factors, started


class TreeModel(EnergyEstimator):
    """Leaves of one tree or of many, which hold class shares or means.

    Labels are ``(n,)``, or ``(n, n_outputs)``: then ``classes_`` and probabilities are lists.

    Parameters
    ----------
    max_depth : int or None
    min_samples_split : int or float
    min_samples_leaf : int or float
        Least weight of a node that is split, and of a leaf; fractions are of the whole weight.
    min_weight_fraction_leaf : float
    max_features : int, float, "sqrt", "log2" or None
        Columns that are tried per node.
    min_impurity_decrease : float
    device : str or torch.device
        Where predictions are computed; trees grow on the CPU.

    Attributes
    ----------
    feature_importances_ : (n_features,) array that sums to one
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    _categories: ClassVar[Any] = Categories()
    _allow_nan: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = "dense"
    _runs_on: Any = "answers"  # trees grow on the CPU
    _single_class: ClassVar[bool] = True
    _multi_output: ClassVar[bool] = True
    _unit: float = 1.0  # what weights of classes make of the weight of a row, on average
    energy_: Any
    classes_: Any
    apply = apply
    decision_path = decision_path

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _solver(self, X: Tensor, weight: Tensor | None) -> GrowTrees:
        raise TypeError(f"{type(self).__name__} must define _solver(X, weight)")

    def _weighed(self, solver: GrowTrees, y: Tensor, weight: Tensor | None) -> GrowTrees:
        """The solver, which lets classes weigh in what it draws."""
        return solver

    @property
    def _draws_rows(self) -> bool:
        return False

    def _target(self, y: Any) -> Any:
        y = np.asarray(y)
        if not is_classifier(self) or y.ndim == 1 or y.shape[1] == 1:
            return super()._target(y.reshape(len(y)) if is_classifier(self) else y)
        check_classification_targets(y)
        found = [np.unique(column, return_inverse=True) for column in y.T]
        index = np.stack([own for _, own in found], 1).astype(np.int64)
        return index, {"classes_": [classes for classes, _ in found]}

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        d, solver = X.shape[1], self._solver(X, weight)
        if not is_classifier(self):
            nodes = TreeNodes(k=y.shape[1], dtype=X.dtype)
            return Plan(started(self, TreeMeanEnergy(d, y.shape[1], nodes)), Naive(), solver)
        solver, sizes = self._weighed(solver, y, weight), self.n_classes_
        if isinstance(sizes, list):
            nodes = TreeNodes(k=sum(sizes), dtype=X.dtype)
            several = started(self, TreeOutputsEnergy(d, sizes, nodes))
            return Plan(several, SoftMin(), GrowOutputs(solver))
        nodes = TreeNodes(k=sizes, dtype=X.dtype)
        return Plan(started(self, TreeClassEnergy(d, sizes, nodes)), SoftMin(), solver)

    def _row_weight(self, y: Any, weight: Any) -> Any:
        self._unit, balance = 1.0, getattr(self, "class_weight", None)
        if self._draws_rows or balance is None:
            return weight  # classes weigh in what is drawn
        whole = "balanced" if balance == "balanced_subsample" else balance
        full = row_factors(whole, self.classes_, y, weight)
        full = full if weight is None else full.astype(weight.dtype) * weight
        self._unit = float(full.sum() / (len(full) if weight is None else weight.sum()))
        return full

    def _best(self, x: Tensor) -> Tensor:
        best: Tensor = self.energy_.probabilities(x).argmax(-1)
        return best

    def _shares(self, x: Tensor) -> Tensor:
        shares: Tensor = self.energy_.probabilities(x)
        return shares

    def _log_shares(self, x: Tensor) -> Tensor:
        return self._shares(x).log()

    def _each_shares(self, x: Tensor) -> list[Tensor]:
        each: list[Tensor] = self.energy_.shares(x)
        return each

    @property
    def n_classes_(self) -> Any:
        """How many classes there are, a list for several outputs."""
        if not is_classifier(self):
            raise AttributeError(f"{type(self).__name__} predicts values, not classes")
        classes = self.classes_
        return [len(own) for own in classes] if isinstance(classes, list) else len(classes)

    @property
    def n_outputs_(self) -> int:
        """How many labels or targets a row has."""
        check_is_fitted(self, "energy_")
        if is_classifier(self):
            return len(self.classes_) if isinstance(self.classes_, list) else 1
        return int(self.energy_.m)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Fall of impurity by column, averaged over trees; sums to one."""
        check_is_fitted(self, "energy_")
        return importances(self, self.energy_.nodes.n_trees)
