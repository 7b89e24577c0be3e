"""Trees whose leaves hold class shares, of one label or of several."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from groundstate.energy.trees.leaves import TreeClassEnergy
from groundstate.energy.trees.nodes import TreeNodes
from groundstate.energy.trees.outputs import TreeOutputsEnergy
from groundstate.learn import SoftMin
from groundstate.learn.solvers.trees.classes import GrowOutputs
from groundstate.learn.solvers.trees.solver import GrowTrees
from groundstate.models.arrays import Home
from groundstate.models.base import Plan
from groundstate.models.roles import EnergyClassifier
from groundstate.models.trees.grown import GrownTrees
from groundstate.models.trees.inputs import row_factors, started
from groundstate.models.trees.view import TreeView


def _one_label(model: Any) -> bool:
    if model._many:
        raise AttributeError("with several outputs there is no decision_function; use energies")
    return True


class GrownClassifier(GrownTrees, EnergyClassifier):
    """Labels ``(n,)``, or ``(n, n_outputs)``: then ``classes_`` and probabilities are lists."""

    _classes: ClassVar[bool] = True
    _single_class: ClassVar[bool] = True
    _multi_output: ClassVar[bool] = True
    class_weight: Any
    classes_: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def _draws_rows(self) -> bool:
        return False

    @property
    def _many(self) -> bool:
        return isinstance(getattr(self, "classes_", None), list)

    @property
    def n_classes_(self) -> Any:
        """How many classes there are, a list for several outputs."""
        classes = self.classes_
        return [len(own) for own in classes] if self._many else len(classes)

    @property
    def n_outputs_(self) -> int:
        """How many labels a row has."""
        classes = self.classes_
        return len(classes) if self._many else 1

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        y = np.asarray(y)
        if y.ndim == 1 or y.shape[1] == 1:
            return super()._target(y.reshape(len(y)))
        check_classification_targets(y)
        found = [np.unique(column, return_inverse=True) for column in y.T]
        index = np.stack([own for _, own in found], 1).astype(np.int64)
        return index, {"classes_": [classes for classes, _ in found]}

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        d, solver = X.shape[1], self._weighed(self._solver(X, weight), y, weight)
        if self._many:
            nodes = TreeNodes(k=sum(self.n_classes_), dtype=X.dtype)
            several = started(self, TreeOutputsEnergy(d, self.n_classes_, nodes))
            return Plan(several, SoftMin(), GrowOutputs(solver))
        nodes = TreeNodes(k=len(self.classes_), dtype=X.dtype)
        energy = started(self, TreeClassEnergy(d, len(self.classes_), nodes))
        return Plan(energy, SoftMin(), solver)

    def _row_weight(self, y: Any, weight: Any) -> Any:
        self._unit, balance = 1.0, getattr(self, "class_weight", None)
        if self._draws_rows or balance is None:
            return weight  # classes weigh in what is drawn
        whole = "balanced" if balance == "balanced_subsample" else balance
        full = row_factors(whole, self.classes_, y, weight)
        full = full if weight is None else full.astype(weight.dtype) * weight
        self._unit = float(full.sum() / (len(full) if weight is None else weight.sum()))
        return full

    def _weighed(self, solver: GrowTrees, y: Tensor, weight: Tensor | None) -> GrowTrees:
        """The solver, which lets classes weigh in what it draws."""
        return solver

    def predict(self, X: Any) -> Any:
        """Labels of lowest energy, ``(n_samples,)`` or ``(n_samples, n_outputs)``."""
        x, home = self._rows(X)
        with torch.no_grad():
            best = self.energy_.probabilities(x).argmax(-1)
        return self._decoded("y", best, home)

    def predict_proba(self, X: Any) -> Any:
        """Class shares of the leaves, ``(n_samples, n_classes)``, or a list of one per output."""
        x, home = self._rows(X)
        with torch.no_grad():
            if self._many:
                return [home.give(p) for p in self.energy_.shares(x)]
            return home.give(self.energy_.probabilities(x))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class shares, ``(n_samples, n_classes)``, or a list."""
        x, home = self._rows(X)
        with torch.no_grad():
            if self._many:
                return [home.give(p.log()) for p in self.energy_.shares(x)]
            return home.give(self.energy_.probabilities(x).log())

    def energies(self, X: Any) -> Any:
        """Energies of all classes, ``(n_samples, n_classes)``, or a list of one per output."""
        if not self._many:
            return super().energies(X)
        return [-log_p for log_p in self.predict_log_proba(X)]

    @available_if(_one_label)
    def decision_function(self, X: Any) -> Any:
        """Scores −e, ``(n_samples, n_classes)``; for two classes their difference, ``(n_samples,)``."""
        return super().decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose label is right; with several outputs, all of its labels."""
        if not self._many:
            return float(super().score(X, y, sample_weight))
        right = (np.asarray(self.predict(X)) == np.asarray(y)).all(axis=1)
        return float(np.average(right, weights=sample_weight))

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name != "y" or not self._many:
            return super()._encoded(name, values)
        columns = []
        for o, (classes, column) in enumerate(zip(self.classes_, np.asarray(values).T)):
            unknown = np.setdiff1d(column, classes)
            if len(unknown):
                raise ValueError(
                    f"output {o} of y holds labels not seen in fit: {unknown[:5].tolist()}"
                )
            columns.append(np.searchsorted(classes, column))
        return np.stack(columns, 1)

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        if name != "y" or not self._many:
            return super()._decoded(name, values, home)
        index = values.cpu().numpy()
        labels = [own[index[..., o]] for o, own in enumerate(self.classes_)]
        return home.give(np.stack(labels, -1))

    def _view(self, t: int) -> TreeView:
        if not self._many:
            return super()._view(t)
        view = TreeView.of(self.energy_.nodes.tree(t), self.n_features_in_, False)
        wide = np.zeros((len(view.value), self.n_outputs_, max(self.n_classes_)))
        ends = np.cumsum([0, *self.n_classes_])
        for o, k in enumerate(self.n_classes_):
            wide[:, o, :k] = view.value[:, ends[o] : ends[o + 1], 0]
        view.value = wide
        return view


__all__ = ["GrownClassifier"]
