r"""Kernels of the dot product: linear, polynomial, sigmoid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from groundstate.math.kernels.base import Bounds, Kernel, limits, positive
from groundstate.math.kernels.geometry import Geometry


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    r""":math:`k = x^\top z`; the feature map is x itself.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])).tolist()
    [[1.0]]
    """

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        return at.dot()


@dataclass(frozen=True, repr=False)
class DotProduct(Kernel):
    r""":math:`k = \sigma_0^2 + x^\top z`: Bayesian linear regression with an intercept.

    Parameters
    ----------
    sigma_0, sigma_0_bounds : standard deviation of the intercept, its bounds or "fixed"

    Examples
    --------
    >>> import numpy as np
    >>> DotProduct(2.0)(np.array([[1.0]])).tolist()
    [[5.0]]
    """

    sigma_0: float = 1.0
    sigma_0_bounds: Bounds = (1e-5, 1e5)
    _learnable: ClassVar[tuple[str, ...]] = ("sigma_0",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma_0", positive(self.sigma_0, "sigma_0"))
        object.__setattr__(self, "sigma_0_bounds", limits(self.sigma_0_bounds, "sigma_0_bounds"))

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        return at.dot() + p["sigma_0"] ** 2


@dataclass(frozen=True, repr=False)
class Polynomial(Kernel):
    r""":math:`k = (\gamma x^\top z + c)^d`: all monomials up to degree d.

    Parameters
    ----------
    degree, coef0, gamma : d, c and γ, not learned

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(2, 1.0)(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])).tolist()
    [[4.0]]
    """

    degree: int = 3
    coef0: float = 0.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if int(self.degree) != self.degree or self.degree < 0:
            raise ValueError(f"degree must be a whole number from 0 up, got {self.degree!r}")
        positive(self.gamma, "gamma")

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        return (at.dot() * self.gamma + self.coef0).pow(int(self.degree))


@dataclass(frozen=True, repr=False)
class Sigmoid(Kernel):
    r""":math:`k = \tanh(\gamma x^\top z + c)`, which is not positive definite in general.

    Parameters
    ----------
    gamma, coef0 : γ and c, not learned

    Examples
    --------
    >>> import numpy as np
    >>> Sigmoid()(np.array([[1.0]])).round(4).tolist()
    [[0.7616]]
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        return (at.dot() * self.gamma + self.coef0).tanh()
