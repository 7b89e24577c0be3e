"""Networks that answer with one label, or with numbers, for each row."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import check_partial_fit_first_call
from groundstate.compute.rows.distinct import merged
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.energy.basic.squared import SquaredEnergy
from groundstate.energy.spaces import label_grid
from groundstate.learn import NLL, SoftMin
from groundstate.learn.base import Rule
from groundstate.models.arrays import Home, unwrap
from groundstate.models.roles import EnergyClassifier, EnergyRegressor
from groundstate.models.rows.network import RowNetwork
from groundstate.models.traits import Traits
from groundstate.nn.blocks.whiten import Rescale


class RowNetworkClassifier(RowNetwork, EnergyClassifier):
    r"""A label for each row, :math:`e(x, y) = -f_\theta(x)_y`, by cross-entropy.

    Several labels that hold or not, y a table of zeros and ones, are independent given x,
    :math:`p(y_k = 1\mid x) = \sigma(f_\theta(x)_k)`.
    """

    classes_: NDArray[Any]
    _multi_output: ClassVar[bool] = False  # True where y may be several labels
    _store_private: ClassVar[tuple[str, ...]] = ("_several",)
    _several: bool = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_label = self._multi_output
        return tags

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        return {"num_classes": len(self.classes_)}

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        space, k = self._space(X), len(self.classes_)
        if not self._several:
            return NetClassEnergy(space, k, net)
        return ClassEnergy(AgainstZero(net), space, label_grid(2, k), -1, normalise=True)

    def _loss(self, energy: Energy) -> Rule:
        return NLL(over="y") if self._several else SoftMin()

    def _row_weight(self, y: Any, weight: NDArray[Any] | None) -> NDArray[Any] | None:
        if not self._several:
            return super()._row_weight(y, weight)
        if getattr(self, "class_weight", None) is not None:
            raise ValueError(
                "class_weight is for one label per row; several labels take sample_weight"
            )
        return weight

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        if np.ndim(y) == 2:
            return self._labels_side_by_side(np.asarray(y))
        found, attributes = self._one_label(y)
        return found, {**attributes, "_several": False}

    def _labels_side_by_side(self, y: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
        if y.shape[1] < 1 or not np.isin(y, (0, 1)).all():
            raise ValueError(
                f"several labels per row are columns of zeros and ones, got y of shape {y.shape} with "
                f"values such as {np.unique(y)[:3].tolist()}"
            )
        known = getattr(self, "classes_", None)
        goes_on = self._partial or (self.warm_start and hasattr(self, "energy_"))
        if goes_on and known is not None and len(known) != y.shape[1]:
            raise ValueError(f"y has {y.shape[1]} labels, the model was fitted to {len(known)}")
        return y.astype(np.int64), {"classes_": np.arange(y.shape[1]), "_several": True}

    def _one_label(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        goes_on = hasattr(self, "classes_") and (
            self._partial or (self.warm_start and hasattr(self, "energy_"))
        )
        if not goes_on:
            return super()._target(y)
        foreign = np.setdiff1d(np.unique(y), self.classes_)
        if len(foreign):
            way = "name all classes that will ever come in the first call of partial_fit"
            raise ValueError(
                f"going on needs the same classes: the model knows {self.classes_.tolist()}, y has "
                f"{foreign.tolist()} as well; "
                f"{way if self._partial else 'use warm_start=False to start anew'}"
            )
        return np.searchsorted(self.classes_, y).astype(np.int64), {}

    def partial_fit(
        self, X: Any, y: Any = None, *, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Go once over these rows, from where the model and its optimiser stand.

        ``classes`` are all labels that will ever come; needed in the first call.
        """
        if not hasattr(self, "energy_") and np.ndim(unwrap(y)[0]) < 2:
            check_partial_fit_first_call(self, classes)
        return super().partial_fit(X, y, sample_weight=sample_weight)

    def _class_table(self, x: Any) -> Tensor:
        return self._in_chunks(lambda rows: self.energy_.table("y", x=rows), x)

    @property
    def network_(self) -> nn.Module:
        net: Any = self._net
        whole: nn.Module = net.net if self._several else net
        return whole

    def _label_scores(self, X: Any) -> tuple[Tensor, Home]:
        """The log-odds of several labels, ``(n, k)``."""
        x, home = self._rows(X)
        net: Any = self._net
        with answering(self.energy_, x):
            return self._in_chunks(net.net, x), home

    def predict(self, X: Any) -> Any:
        """Labels of lowest energy, ``(n_samples,)``; several labels are ``(n_samples, n_labels)``."""
        if not self._several:
            return super().predict(X)
        scores, home = self._label_scores(X)
        return home.give((scores > 0).long())

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes; of several labels the probability that each holds."""
        if not self._several:
            return super().predict_proba(X)
        scores, home = self._label_scores(X)
        return home.give(torch.sigmoid(scores))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of ``predict_proba``."""
        if not self._several:
            return super().predict_log_proba(X)
        scores, home = self._label_scores(X)
        return home.give(nn.functional.logsigmoid(scores))

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        return values if self._several else super()._encoded(name, values)

    def _labels(self, index: Tensor, home: Home) -> Any:
        return home.give(index) if self._several else super()._labels(index, home)


class AgainstZero(nn.Module):
    """Scores ``(B, k)`` of labels that hold, each beside the score 0 of not holding, ``(B, k, 2)``."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def config(self) -> dict[str, Any]:
        return {"net": self.net}

    def forward(self, x: Any) -> Tensor:
        f = self.net(x)
        return torch.stack((torch.zeros_like(f), f), -1)


class RowNetworkRegressor(RowNetwork, EnergyRegressor):
    r"""Numbers for each row, :math:`e(x, y) = \tfrac12\|y - (\mu + s\,f_\theta(x))\|^2`.

    μ and s are mean and scale of the targets, so that the network's own outputs are of unit size.
    """

    traits = Traits(scaled_target=False)
    _scale: Rescale

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        self._scale = Rescale(y.shape[1]).to(y.device, y.dtype)
        once, total = merged({"y": y}, weight)  # the same sums however often a row is there
        self._scale.fit(once["y"], total)

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        return {"num_classes": y.shape[1], "out_features": y.shape[1]}

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        scale = self.__dict__.pop("_scale")  # from here on a part of the energy
        return SquaredEnergy(self._space(X), y.shape[1], nn.Sequential(net, scale))

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net[0]

    def predict(self, X: Any) -> Any:
        """Values of lowest energy, ``(n_samples,)`` or ``(n_samples, n_targets)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            y = self._in_chunks(self._net, x)
        return home.give(y[:, 0] if self._flat_target else y)
