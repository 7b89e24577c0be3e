"""Kernel regression: local means."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.energy.base import Energy
from groundstate.energy.kernels.smoother import SmootherEnergy
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.smoother import Smoothing
from groundstate.math.kernels import Kernel
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.kernels.nested import NestedKernel
from groundstate.models.kernels.width import start_kernel
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="kernels", task="regression", role="regressor", max_rows=50_000, auto=False)
class KernelRegressor(NestedKernel, EnergyRegressor):
    r"""The mean of the targets nearby, as Nadaraya and Watson weigh them.

    .. math::
        e(x, y) = \tfrac12\|y - f(x)\|^2, \qquad
        f(x) = \frac{\sum_i w_i\, k(x, x_i)\, y_i}{\sum_i w_i\, k(x, x_i)} .

    Where all kernel values vanish, the nearest row answers.

    Parameters
    ----------
    kernel : kernel object, function of two arrays of rows, or None
        None is an RBF as wide as the spread of the rows.
    normalize : bool, default=True
        False is the plain sum :math:`\sum_i w_i k(x, x_i) y_i`.
    bandwidth : {"auto", "loo", "fixed"}, default="auto"
        "loo" learns the parameters of the kernel by leaving one out, "fixed" keeps them; "auto"
        learns those of the default kernel.

    Attributes
    ----------
    kernel_ : the kernel with its parameters
    energy_ : SmootherEnergy

    Examples
    --------
    >>> from groundstate import KernelRegressor
    >>> from groundstate.math.kernels import RBF
    >>> model = KernelRegressor(RBF(1.0)).fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0])
    >>> model.predict([[1.0]]).round(6).tolist()
    [0.729488]
    """

    traits = Traits(space={"normalize": settings.Choice(True, False)})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [None, Kernel, callable],
        "normalize": ["boolean"],
        "bandwidth": [StrOptions({"auto", "loo", "fixed"})],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        normalize: bool = True,
        bandwidth: str = "auto",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        learn = self.bandwidth == "loo" or (self.bandwidth == "auto" and self.kernel is None)
        kernel = start_kernel(self.kernel, X, y, weight)
        return Plan(
            energy=SmootherEnergy(X.shape[1], y.shape[1], kernel, normalize=self.normalize),
            rule=Naive(over="y"),
            solver=Smoothing(learn),
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {"kernel_": energy.kernel}
