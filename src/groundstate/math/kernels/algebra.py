r"""Kernels from kernels: sums, products and powers are kernels again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.math.kernels.base import Kernel, Pullback
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.stationary import Constant


def as_kernel(value: Any) -> Kernel:
    """A kernel as it is; a positive number as a constant kernel."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, int | float):
        return Constant(float(value))
    raise TypeError(f"a kernel combines with kernels and numbers, got {type(value).__name__}")


@dataclass(frozen=True, repr=False)
class _Pair(Kernel):
    k1: Kernel
    k2: Kernel

    def is_stationary(self) -> bool:
        return self.k1.is_stationary() and self.k2.is_stationary()

    @property
    def n_dims(self) -> int:
        return self.k1.n_dims + self.k2.n_dims

    @property
    def theta(self) -> NDArray[np.float64]:
        return np.concatenate([self.k1.theta, self.k2.theta])

    @property
    def bounds(self) -> NDArray[np.float64]:
        return np.concatenate([self.k1.bounds, self.k2.bounds])

    def clone_with_theta(self, theta: Any) -> Self:
        theta = np.asarray(theta, float).reshape(-1)
        self._check_size(len(theta))
        cut = self.k1.n_dims
        left, right = self.k1.clone_with_theta(theta[:cut]), self.k2.clone_with_theta(theta[cut:])
        return type(self)(left, right)

    def of(self, at: Geometry, theta: Tensor | None = None) -> Tensor:
        cut = self.k1.n_dims
        first = self.k1.of(at, None if theta is None else theta[:cut])
        second = self.k2.of(at, None if theta is None else theta[cut:])
        return self._joined(first, second)

    def pulled(self, at: Geometry, theta: Tensor) -> tuple[Tensor, Pullback]:
        cut = self.k1.n_dims
        first, pull_first = self.k1.pulled(at, theta[:cut])
        second, pull_second = self.k2.pulled(at, theta[cut:])

        def pull(W: Tensor) -> Tensor:
            left, right = self._slopes(W, first, second)
            return torch.cat([pull_first(left), pull_second(right)])

        return self._joined(first, second), pull

    def _joined(self, first: Tensor, second: Tensor) -> Tensor:
        raise TypeError("a pair of kernels says how their values are joined")

    def _slopes(self, W: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Slopes in the values of either kernel from those in the joined ones."""
        raise TypeError("a pair of kernels says what its slopes are")


@dataclass(frozen=True, repr=False)
class Sum(_Pair):
    r""":math:`k_1 + k_2`: independent functions added up.

    Examples
    --------
    >>> from groundstate.math.kernels import RBF, White
    >>> RBF(1.0) + White(0.1)
    RBF(length_scale=1) + White(noise_level=0.1)
    """

    def _joined(self, first: Tensor, second: Tensor) -> Tensor:
        return first + second

    def _slopes(self, W: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        return W, W

    def __repr__(self) -> str:
        return f"{self.k1!r} + {self.k2!r}"


@dataclass(frozen=True, repr=False)
class Product(_Pair):
    r""":math:`k_1 k_2`: alike where both find them alike.

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> 2.0 * RBF(1.0)
    Constant(constant_value=2) * RBF(length_scale=1)
    """

    def _joined(self, first: Tensor, second: Tensor) -> Tensor:
        return first * second

    def _slopes(self, W: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        return W * second, W * first

    def __repr__(self) -> str:
        left, right = (f"({k!r})" if isinstance(k, Sum) else f"{k!r}" for k in (self.k1, self.k2))
        return f"{left} * {right}"


@dataclass(frozen=True, repr=False)
class Power(Kernel):
    r""":math:`k^p` with a fixed exponent.

    Examples
    --------
    >>> from groundstate.math.kernels import Linear
    >>> Linear() ** 2
    Linear() ** 2
    """

    kernel: Kernel
    exponent: float

    def is_stationary(self) -> bool:
        return self.kernel.is_stationary()

    @property
    def n_dims(self) -> int:
        return self.kernel.n_dims

    @property
    def theta(self) -> NDArray[np.float64]:
        return self.kernel.theta

    @property
    def bounds(self) -> NDArray[np.float64]:
        return self.kernel.bounds

    def clone_with_theta(self, theta: Any) -> Self:
        return type(self)(self.kernel.clone_with_theta(theta), self.exponent)

    def of(self, at: Geometry, theta: Tensor | None = None) -> Tensor:
        return self.kernel.of(at, theta) ** self.exponent

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, _Pair) else f"{self.kernel!r}"
        return f"{inner} ** {self.exponent}"
