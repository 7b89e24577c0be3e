"""Kernel classification: shares of the classes nearby."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.energy.base import Energy
from groundstate.energy.kernels.smoother import SmootherClassEnergy
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.smoother import Smoothing
from groundstate.math.kernels import Kernel
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.kernels.nested import NestedKernel
from groundstate.models.kernels.width import start_kernel
from groundstate.models.roles import EnergyClassifier
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(
    family="kernels", task="classification", role="classifier", max_rows=50_000, auto=False
)
class KernelClassifier(NestedKernel, EnergyClassifier):
    r"""The share of each class among the rows nearby.

    .. math::
        e(x, y) = -\log\frac{\sum_{i: y_i = y} w_i\, k(x, x_i)}{\sum_i w_i\, k(x, x_i)},
        \qquad p(y \mid x) = e^{-e(x, y)} .

    Where all kernel values vanish, the nearest row answers.

    Parameters
    ----------
    kernel : kernel object, function of two arrays of rows, or None
        None is an RBF as wide as the spread of the rows. Its values must not be negative.
    normalize : bool, default=True
        False takes minus the plain sums as energies; for labels ±1 the sign of
        :math:`\sum_i w_i k(x, x_i) y_i` decides.
    bandwidth : {"auto", "loo", "fixed"}, default="auto"
        "loo" learns the parameters of the kernel by leaving one out, "fixed" keeps them; "auto"
        learns those of the default kernel.

    Attributes
    ----------
    kernel_ : the kernel with its parameters
    energy_ : SmootherClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import KernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(KernelClassifier().fit(X, y).score(X, y) > 0.95)
    True
    """

    traits = Traits(space={"normalize": settings.Choice(True, False)})

    _single_class: ClassVar[bool] = True
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
        learn = self.bandwidth == "loo" or (self.bandwidth == "auto" and self.kernel is None)
        kernel = start_kernel(self.kernel, X, y, weight)
        return Plan(
            energy=SmootherClassEnergy(
                X.shape[1], len(self.classes_), kernel, normalize=self.normalize
            ),
            rule=SoftMin(),
            solver=Smoothing(learn),
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {"kernel_": energy.kernel}
