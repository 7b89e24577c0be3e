"""What estimators of a linear metric have in common: a map J, its metric JᵀJ, the mapped rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.neighbors.linear_metric import LinearMetricEnergy
from groundstate.learn.solvers.metrics.starts import STARTS
from groundstate.models.learned import Learned
from groundstate.models.resident import class_numbers
from groundstate.models.roles import EnergyTransformer


class LinearMetricLearner(ClassNamePrefixFeaturesOutMixin, EnergyTransformer):
    """A map J learned from labelled rows; ``transform`` applies it.

    Parameters
    ----------
    max_iter : int
        Steps of L-BFGS.
    n_components : int
        Rows of J; None is as many as features.
    random_state : int
        Of ``init="random"``.
    """

    _takes_target: ClassVar[bool] = True
    _takes_classes: ClassVar[bool] = True
    n_components: int | None
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _min_rows(self) -> int:
        return 2

    def _target(self, y: Any) -> tuple[NDArray[np.int64], dict[str, Any]]:
        check_classification_targets(y)
        classes, index = np.unique(y, return_inverse=True)
        return index.astype(np.int64), {"classes_": classes}

    def _resident_target(self, y: Any, X: Tensor) -> tuple[Tensor, dict[str, Any]] | None:
        found = class_numbers(y, len(X))
        return None if found is None else (found[0], {"classes_": found[1]})

    def _energy(self, X: Tensor) -> LinearMetricEnergy:
        d = X.shape[1]
        p = d if self.n_components is None else self.n_components
        if p > d:
            raise ValueError(
                f"n_components={p} cannot be greater than the number of features, {d}; a metric has at "
                "most one direction for each"
            )
        return LinearMetricEnergy(d, p, len(self.classes_))

    def _start(self, X: Tensor) -> Any:
        """``init``, checked where it is an array."""
        init = self.init
        if getattr(self, "warm_start", False) and hasattr(self, "energy_"):
            init = np.array(self.components_)
        if isinstance(init, str):
            if init not in STARTS:
                raise ValueError(
                    f"init must be an array or one of {', '.join(STARTS)}, got {init!r}"
                )
            return init
        J = np.asarray(init, dtype=np.float64)
        p = X.shape[1] if self.n_components is None else self.n_components
        if J.shape != (p, X.shape[1]) or not np.isfinite(J).all():
            raise ValueError(
                f"init must be finite and of shape (n_components, n_features) = ({p}, {X.shape[1]}), "
                f"got shape {J.shape}"
            )
        return J

    components_ = Learned(lambda model: model.energy_.J)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {}

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name != "y":
            return values
        unknown = np.setdiff1d(values, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds labels not seen in fit: {unknown[:5].tolist()}")
        return np.searchsorted(self.classes_, values)

    def _decoded(self, name: str, values: Tensor, home: Any) -> Any:
        return home.give(self.classes_[values.cpu().numpy()] if name == "y" else values)

    def transform(self, X: Any) -> Any:
        """Jx of each row, ``(n_samples, n_components)``: Euclidean distances there are the metric's."""
        x, home = self._rows(X)
        J: Tensor = self.energy_.J
        with answering(self.energy_, x):
            return home.give(x @ J.detach().T)

    def get_mahalanobis_matrix(self) -> NDArray[Any]:
        r""":math:`M = J^\top J`, ``(n_features, n_features)``."""
        check_is_fitted(self, "energy_")
        J = np.asarray(self.components_)
        return J.T @ J

    def metric(self) -> Callable[[Any, Any], float]:
        r"""The distance of two rows, :math:`\|J(a - b)\|`, as neighbour searches take it."""
        check_is_fitted(self, "energy_")
        J = np.array(self.components_)

        def distance(a: Any, b: Any) -> float:
            return float(np.linalg.norm(J @ (np.asarray(a) - np.asarray(b))))

        return distance
