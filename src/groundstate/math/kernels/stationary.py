r"""Kernels of the difference :math:`x - z`: smooth, rough and periodic."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.math.kernels.base import (
    WIDE,
    Bounds,
    Kernel,
    Pullback,
    Scale,
    limits,
    positive,
)
from groundstate.math.kernels.bessel import bessel_decay
from groundstate.math.kernels.fused import gaussian_tiles
from groundstate.math.kernels.geometry import Geometry


@dataclass(frozen=True, repr=False)
class RBF(Kernel):
    r""":math:`k = \exp(-\|x - z\|^2 / 2\ell^2)`, infinitely smooth.

    Parameters
    ----------
    length_scale : ℓ, or one per feature
    length_scale_bounds : pair or "fixed"
    gamma : instead of ℓ, :math:`\gamma = 1/2\ell^2`

    Examples
    --------
    >>> import numpy as np
    >>> RBF(2.0)(np.array([[0.0], [2.0]])).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    length_scale: Scale = 1.0
    length_scale_bounds: Bounds = WIDE
    gamma: InitVar[float | None] = None
    _learnable: ClassVar[tuple[str, ...]] = ("length_scale",)
    _stationary: ClassVar[bool] = True

    def __post_init__(self, gamma: float | None) -> None:
        if gamma is not None:
            object.__setattr__(self, "length_scale", self._from_gamma(_gamma(gamma)))
        _checked(self)

    def _from_gamma(self, gamma: float) -> float:
        return math.sqrt(0.5 / gamma)

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        return gaussian(at, p["length_scale"])

    def pulled(self, at: Geometry, theta: Tensor) -> tuple[Tensor, Pullback]:
        if type(self) is not RBF or isinstance(self.length_scale, tuple) or not len(theta):
            return super().pulled(at, theta)
        scale = theta.detach()[0].exp()
        K = gaussian(at, scale)
        return K, lambda W: (W * K).mul_(at.plain()).sum().div_(scale.square()).reshape(1)


@dataclass(frozen=True, repr=False)
class Laplacian(RBF):
    r""":math:`k = \exp(-\|x - z\| / \ell)`: continuous, nowhere smooth (Matérn with ν = ½).

    The distance is Euclidean; that of scikit-learn's ``laplacian_kernel`` is the sum of the columns' distances.

    Parameters
    ----------
    length_scale, length_scale_bounds : as in `RBF`
    gamma : instead of ℓ, :math:`\gamma = 1/\ell`

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(2.0)(np.array([[0.0], [2.0]]))[0].round(4).tolist()
    [1.0, 0.3679]
    """

    def _from_gamma(self, gamma: float) -> float:
        return 1.0 / gamma

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        return at.distance(p["length_scale"]).neg().exp()


Laplace = Laplacian


@dataclass(frozen=True, repr=False)
class Matern(Kernel):
    r"""Matérn with smoothness ν: :math:`(1 + \sqrt3 r)e^{-\sqrt3 r}` at ν = 3/2, r = ‖x − z‖/ℓ.

    Parameters
    ----------
    length_scale, length_scale_bounds : as in `RBF`
    nu : smoothness; 0.5 is `Laplacian`, infinity `RBF`, and 0.5, 1.5, 2.5 are quick

    Examples
    --------
    >>> import numpy as np
    >>> Matern(1.0, nu=1.5)(np.array([[0.0], [1.0]]))[0].round(4).tolist()
    [1.0, 0.4834]
    """

    length_scale: Scale = 1.0
    length_scale_bounds: Bounds = WIDE
    nu: float = 1.5
    _learnable: ClassVar[tuple[str, ...]] = ("length_scale",)
    _stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.nu > 0:
            raise ValueError(f"nu must be positive, got {self.nu!r}")
        _checked(self)

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        if self.nu == math.inf:
            return gaussian(at, p["length_scale"])
        r = at.distance(p["length_scale"]) * math.sqrt(2 * self.nu)
        if self.nu not in (0.5, 1.5, 2.5):
            return bessel_decay(r, self.nu)
        decay = r.neg().exp()
        if self.nu == 0.5:
            return decay
        return (1 + r if self.nu == 1.5 else 1 + r + r.square() / 3) * decay


@dataclass(frozen=True, repr=False)
class RationalQuadratic(Kernel):
    r""":math:`k = (1 + \|x - z\|^2 / 2\alpha\ell^2)^{-\alpha}`: RBFs of many lengths.

    Parameters
    ----------
    length_scale, alpha : positive
    length_scale_bounds, alpha_bounds : pair or "fixed"

    Examples
    --------
    >>> import numpy as np
    >>> RationalQuadratic()(np.array([[0.0], [1.0]]))[0].round(4).tolist()
    [1.0, 0.6667]
    """

    length_scale: Scale = 1.0
    alpha: float = 1.0
    length_scale_bounds: Bounds = WIDE
    alpha_bounds: Bounds = WIDE
    _learnable: ClassVar[tuple[str, ...]] = ("alpha", "length_scale")
    _stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checked(self)

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        a = p["alpha"]
        return (-a * torch.log1p(at.squared(p["length_scale"]) / (2 * a))).exp()


@dataclass(frozen=True, repr=False)
class Periodic(Kernel):
    r""":math:`k = \exp(-2\sin^2(\pi\|x - z\|/p)/\ell^2)`, which returns after each period p.

    It is a kernel of one feature; on several, where distances are Euclidean, it can fail to be
    positive definite. Multiply one for each feature instead.

    Parameters
    ----------
    length_scale, periodicity : ℓ and p; ``period`` is another name for p
    length_scale_bounds, periodicity_bounds : pair or "fixed"

    Examples
    --------
    >>> import numpy as np
    >>> Periodic(1.0, 3.0)(np.array([[0.0], [3.0]]))[0].round(4).tolist()
    [1.0, 1.0]
    """

    length_scale: float = 1.0
    periodicity: float = 1.0
    length_scale_bounds: Bounds = WIDE
    periodicity_bounds: Bounds = WIDE
    period: InitVar[float | None] = None
    gamma: InitVar[float | None] = None
    _learnable: ClassVar[tuple[str, ...]] = ("length_scale", "periodicity")
    _stationary: ClassVar[bool] = True

    def __post_init__(self, period: float | None, gamma: float | None) -> None:
        if period is not None:
            object.__setattr__(self, "periodicity", period)
        if gamma is not None:
            object.__setattr__(self, "length_scale", math.sqrt(2.0 / _gamma(gamma)))
        _checked(self)

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        angle = at.distance(p["periodicity"]) * math.pi
        return (-2 * (angle.sin() / p["length_scale"]).square()).exp()


@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    r""":math:`k = c`, a scale in products and an unknown level in sums.

    Parameters
    ----------
    constant_value, constant_value_bounds : c > 0, and its pair of bounds or "fixed"

    Examples
    --------
    >>> import numpy as np
    >>> Constant(2.0)(np.zeros((1, 1))).tolist()
    [[2.0]]
    """

    constant_value: float = 1.0
    constant_value_bounds: Bounds = WIDE
    _learnable: ClassVar[tuple[str, ...]] = ("constant_value",)
    _stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checked(self)

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        c = p["constant_value"]
        c = c if isinstance(c, Tensor) else at.x.new_tensor(c)
        return c.expand(at.shape())

    def pulled(self, at: Geometry, theta: Tensor) -> tuple[Tensor, Pullback]:
        if not len(theta):
            return super().pulled(at, theta)
        c = theta.detach()[0].exp()
        return c.expand(at.shape()), lambda W: (W.sum() * c).reshape(1)


@dataclass(frozen=True, repr=False)
class White(Kernel):
    r""":math:`k = \sigma^2` for a draw with itself and 0 otherwise: independent noise.

    Parameters
    ----------
    noise_level, noise_level_bounds : σ², and its pair of bounds or "fixed"

    Examples
    --------
    >>> import numpy as np
    >>> X = np.zeros((2, 1))
    >>> White(0.5)(X).tolist(), White(0.5)(X, X).tolist()
    ([[0.5, 0.0], [0.0, 0.5]], [[0.0, 0.0], [0.0, 0.0]])
    """

    noise_level: float = 1.0
    noise_level_bounds: Bounds = WIDE
    _learnable: ClassVar[tuple[str, ...]] = ("noise_level",)
    _stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checked(self)

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        return at.diagonal(p["noise_level"])

    def pulled(self, at: Geometry, theta: Tensor) -> tuple[Tensor, Pullback]:
        if not len(theta) or not at.same:
            return super().pulled(at, theta)
        level = theta.detach()[0].exp()
        return at.diagonal(level), lambda W: (W.diagonal().sum() * level).reshape(1)


def gaussian(at: Geometry, scale: Any) -> Tensor:
    r""":math:`\exp(-d^2/2\ell^2)`: by tiles where they apply, else in two passes over the matrix."""
    tiled = gaussian_tiles(at.x, at.z, at.same, scale)
    if tiled is not None:
        return tiled
    if isinstance(scale, Tensor) and scale.ndim:
        return at.squared(scale).mul(-0.5).exp()
    return (at.plain() * (-0.5 / scale**2)).exp()


def _gamma(gamma: float) -> float:
    value = positive(gamma, "gamma")
    assert isinstance(value, float)
    return value


def _checked(kernel: Kernel) -> None:
    for name in kernel._learnable:
        value, bounds = getattr(kernel, name), getattr(kernel, f"{name}_bounds")
        object.__setattr__(kernel, name, positive(value, name))
        object.__setattr__(kernel, f"{name}_bounds", limits(bounds, f"{name}_bounds"))
