"""Classification by all rows within a radius."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.thread_policy import answering
from groundstate.energy.neighbors.within import RadiusClassEnergy
from groundstate.learn import NLL
from groundstate.learn.solvers.neighbors import Memorise
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.base import Plan
from groundstate.models.neighbors.joint_labels import JointLabels
from groundstate.models.neighbors.radius import radius_neighbors, radius_neighbors_graph
from groundstate.models.neighbors.search import NeighborSearch
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="neighbors", task="classification", role="classifier", auto=False)
class RadiusNeighborsClassifier(NeighborSearch, JointLabels):
    r"""All remembered rows within a radius vote on the class.

    .. math:: e(x, y) = -\log\sum_{i : d(x, x_i) \le r} s_i(x)\,[y_i = y] ,

    with shares s that sum to one. Nothing is learned but the rows. A tie goes to the first class; a
    row of weight w is w rows. Rows may have several labels, y of shape (n_samples, n_outputs), each
    of which is voted on.

    ``predict(None)`` answers for the fitted rows, each by all others within the radius.

    Parameters
    ----------
    radius : float, default=1.0
        r; a row at exactly this distance votes.
    weights : {"uniform", "distance"} or callable, default="uniform"
        Votes of equal weight, of 1/distance (where exact hits win), or a function of an array of
        distances.
    outlier_label : label, list of labels, "most_frequent" or None, default=None
        Label of a row that no remembered row is near; a label that is no class has all
        probabilities zero. None refuses such rows.

    Attributes
    ----------
    outlier_label_ : list of one label for each output, or None
    energy_ : RadiusClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import RadiusNeighborsClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [10.0]]), ["a", "a", "b", "b"]
    >>> model = RadiusNeighborsClassifier(1.5, outlier_label="b").fit(X, y)
    >>> model.predict([[0.8], [5.0]]).tolist()
    ['a', 'b']
    """

    traits = Traits(
        space={
            "radius": settings.Real(0.1, 10.0, log=True),
            "weights": settings.Choice("uniform", "distance"),
            "p": settings.Choice(1, 2),
            "outlier_label": settings.Choice("most_frequent"),
        }
    )
    _single_class: ClassVar[bool] = True
    _store_private: ClassVar[tuple[str, ...]] = ("_joint",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "outlier_label": [Real, str, "array-like", None],
    }
    n_neighbors: ClassVar[int] = 5  # of `kneighbors`, where none is given
    outlier_label_: list[Any] | None

    radius_neighbors = radius_neighbors
    radius_neighbors_graph = radius_neighbors_graph

    def __init__(
        self,
        radius: float = 1.0,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        outlier_label: Any = None,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _each_classes(self) -> list[NDArray[Any]]:
        return list(self.classes_) if self.outputs_2d_ else [self.classes_]

    def _codes(self) -> NDArray[np.int64]:
        """Number of the class of every label, for the classes of the energy, ``(k, outputs)``."""
        return self._joint if self.outputs_2d_ else np.arange(len(self.classes_))[:, None]

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        self.outlier_label_ = self._outlier(y, weight)
        otherwise = None
        if self.outlier_label_ is not None:
            known = zip(self._each_classes(), self.outlier_label_, self._codes().T, strict=True)
            same = np.all([classes[code] == label for classes, label, code in known], axis=0)
            otherwise = int(same.argmax()) if same.any() else None
        memory = self._memory()
        del memory["n_neighbors"]
        energy = RadiusClassEnergy(
            self._combinations(), X.shape[1], self.radius, otherwise=otherwise, **memory
        )
        return Plan(energy=energy, rule=NLL(), solver=Memorise())

    def _outlier(self, y: Tensor, weight: Tensor | None) -> list[Any] | None:
        """The label of an outlier for each output, checked."""
        given, known = self.outlier_label, self._each_classes()
        if given is None:
            return None
        if isinstance(given, str) and given == "most_frequent":
            rows = self._codes()[y.cpu().numpy()]
            w = None if weight is None else weight.double().cpu().numpy()
            return [c[np.bincount(code, w).argmax()] for c, code in zip(known, rows.T, strict=True)]
        labels = [given] * len(known) if np.ndim(given) == 0 else list(given)
        if len(labels) != len(known):
            raise ValueError(
                f"The length of outlier_label: {given} is inconsistent with the output length: "
                f"{len(known)}"
            )
        for classes, label in zip(known, labels, strict=True):
            if np.ndim(label):
                raise TypeError(
                    f"The outlier_label of classes {classes} is supposed to be a scalar, got {label}."
                )
            if np.append(classes, label).dtype != classes.dtype:
                raise TypeError(
                    f"The dtype of outlier_label {label} is inconsistent with classes {classes} in y."
                )
        return labels

    def _each_distribution(self, X: Any) -> tuple[list[Tensor], Home]:
        x, home = self._rows(X)
        energy: Any = self.energy_
        found = []
        with answering(energy, x):
            codes = torch.from_numpy(self._codes()).to(x.device)[energy.target]  # (n, outputs)
            for j, classes in enumerate(self._each_classes()):
                code = codes[:, j].contiguous()
                p = energy.tally(x, code, len(classes))
                found.append(self._with_outliers(p, j).to(x.dtype))
        return found, home

    def _with_outliers(self, p: Tensor, j: int) -> Tensor:
        """Probabilities of one label, also where no row is near."""
        alone = ~(p > 0).any(1)
        if not bool(alone.any()):
            return p
        if self.outlier_label_ is None:
            where = alone.nonzero()[:, 0].tolist()
            raise ValueError(
                f"No neighbors found for test samples {where[:10]} within radius={self.radius}; use a "
                "larger radius, give outlier_label, or leave these rows out"
            )
        place = np.flatnonzero(self._each_classes()[j] == self.outlier_label_[j])
        if len(place):
            p[alone, int(place[0])] = 1.0
        else:
            warnings.warn(
                f"Outlier label {self.outlier_label_[j]} is not in training classes. All class "
                "probabilities of outliers will be assigned with 0.",
                UserWarning,
                stacklevel=4,
            )
        return p

    def predict(self, X: Any) -> Any:
        """Labels of most votes, ``(n_samples,)`` or ``(n_samples, n_outputs)``."""
        distributions, home = self._each_distribution(X)
        columns = []
        for j, (classes, p) in enumerate(zip(self._each_classes(), distributions, strict=True)):
            best = classes[p.argmax(1).cpu().numpy()]
            if self.outlier_label_ is not None:
                best[~(p > 0).any(1).cpu().numpy()] = self.outlier_label_[j]
            columns.append(best)
        return home.give(np.column_stack(columns) if self.outputs_2d_ else columns[0])

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, ``(n_samples, n_classes)``; a list of them for several labels."""
        found, home = self._each_distribution(X)
        return [home.give(p) for p in found] if self.outputs_2d_ else home.give(found[0])

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class probabilities, in the shape of ``predict_proba``."""
        found, home = self._each_distribution(X)
        logs = [home.give(p.log()) for p in found]
        return logs if self.outputs_2d_ else logs[0]
