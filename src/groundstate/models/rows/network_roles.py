"""Networks that answer with one label, or with numbers, for each row."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import check_partial_fit_first_call
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.energy.basic.squared import SquaredEnergy
from groundstate.learn import SoftMin
from groundstate.learn.base import Rule
from groundstate.models.roles import EnergyClassifier, EnergyRegressor
from groundstate.models.rows.network import RowNetwork
from groundstate.models.traits import Traits
from groundstate.nn.blocks.whiten import Rescale


class RowNetworkClassifier(RowNetwork, EnergyClassifier):
    r"""A label for each row, :math:`e(x, y) = -f_\theta(x)_y`, by cross-entropy."""

    classes_: NDArray[Any]

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        return {"num_classes": len(self.classes_)}

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        return NetClassEnergy(self._space(X), len(self.classes_), net)

    def _loss(self, energy: Energy) -> Rule:
        return SoftMin()

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
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
        if not hasattr(self, "energy_"):
            check_partial_fit_first_call(self, classes)
        return super().partial_fit(X, y, sample_weight=sample_weight)

    def _class_table(self, x: Any) -> Tensor:
        return self._in_chunks(lambda rows: self.energy_.table("y", x=rows), x)


class RowNetworkRegressor(RowNetwork, EnergyRegressor):
    r"""Numbers for each row, :math:`e(x, y) = \tfrac12\|y - (\mu + s\,f_\theta(x))\|^2`.

    μ and s are mean and scale of the targets, so that the network's own outputs are of unit size.
    """

    traits = Traits(scaled_target=False)
    _scale: Rescale

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        self._scale = Rescale(y.shape[1]).to(y.device, y.dtype)
        self._scale.fit(y, weight)

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
