r"""Feature maps :math:`\varphi` written out: their inner products are kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.errors import Unsupported
from groundstate.math.arrays import takes_arrays
from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.stationary import RBF, Laplacian, Matern


@lru_cache(maxsize=64)
def _powers(d: int, degree: int) -> tuple[tuple[int, ...], ...]:
    """Exponents of all monomials of one degree; pure powers first."""
    found = []
    for chosen in combinations_with_replacement(range(d), degree):
        found.append(tuple(chosen.count(j) for j in range(d)))
    return tuple(sorted(found, key=lambda p: (sum(e > 0 for e in p), [-e for e in p])))


def _monomials(x: Tensor, degree: int) -> Tensor:
    r"""Monomials with :math:`\sqrt{\text{multinomial}}`, whose inner product is
    :math:`(x^\top z)^{\text{degree}}`."""
    columns = []
    for powers in _powers(x.shape[1], degree):
        ways = math.factorial(degree) / math.prod(math.factorial(e) for e in powers)
        column = x.new_full((len(x),), math.sqrt(ways))
        for j, e in enumerate(powers):
            if e:
                column = column * x[:, j] ** e
        columns.append(column)
    return torch.stack(columns, 1)


def _rows(X: Tensor) -> Tensor:
    return X[:, None] if X.ndim == 1 else X


@dataclass(frozen=True)
class PolynomialKernelMap:
    r""":math:`\varphi` of :math:`(\gamma x^\top z + c)^d`; for d = 2 and two features
    :math:`(x_1^2, x_2^2, \sqrt2x_1x_2, \sqrt{2c}x_1, \sqrt{2c}x_2, c)`.

    Parameters
    ----------
    degree, coef0, gamma : d, c ≥ 0 and γ

    Examples
    --------
    >>> phi = PolynomialKernelMap(2, 1.0)
    >>> float((phi([[1.0, 2.0]]) * phi([[3.0, -1.0]])).sum().round(9))
    4.0
    """

    degree: int = 2
    coef0: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if self.coef0 < 0:
            raise ValueError(f"coef0 must not be negative for a real feature map, got {self.coef0}")

    @takes_arrays("X")
    def __call__(self, X: Any) -> Any:
        """Features of rows ``(n, p)``, ``(n, number of monomials up to the degree)``."""
        x = _rows(X)
        parts = []
        for k in range(self.degree, -1, -1):
            if k < self.degree and self.coef0 == 0:
                break
            scale = math.comb(self.degree, k) * self.gamma**k * self.coef0 ** (self.degree - k)
            parts.append(math.sqrt(scale) * _monomials(x, k))
        return torch.cat(parts, 1)


@dataclass(frozen=True)
class RBFTaylor:
    r"""The first terms of :math:`e^{-\gamma\|x\|^2}e^{-\gamma\|z\|^2}\sum_k(2\gamma x^\top z)^k/k!`,
    which is :math:`e^{-\gamma\|x - z\|^2}`: the Gaussian kernel's map has no end.

    Parameters
    ----------
    order : last k
    gamma : γ = 1/2ℓ²

    Examples
    --------
    >>> phi = RBFTaylor(10, 0.5)
    >>> float((phi([[1.0]]) * phi([[0.5]])).sum().round(6)), round(math.exp(-0.125), 6)
    (0.882497, 0.882497)
    """

    order: int = 5
    gamma: float = 1.0

    @takes_arrays("X")
    def __call__(self, X: Any) -> Any:
        """Features of rows ``(n, p)``."""
        x = _rows(X)
        decay = (-self.gamma * (x * x).sum(1)).exp()[:, None]
        terms = [
            math.sqrt((2 * self.gamma) ** k / math.factorial(k)) * _monomials(x, k)
            for k in range(self.order + 1)
        ]
        return decay * torch.cat(terms, 1)


@dataclass(frozen=True)
class Lift:
    r"""Any map of rows as a feature map, :math:`k(x, z) = \varphi(x)^\top\varphi(z)`.

    Parameters
    ----------
    function : from rows ``(n, p)`` to features ``(n, q)`` or ``(n,)``

    Examples
    --------
    >>> lift = Lift(lambda X: np.column_stack([X, X[:, 0] * X[:, 1]]))
    >>> lift.kernel([[1.0, -1.0]], [[1.0, 1.0]]).tolist()
    [[-1.0]]
    """

    function: Callable[[Any], Any]

    def __call__(self, X: Any) -> Any:
        if isinstance(X, Tensor):
            return _rows(self.function(_rows(X)))
        x = np.asarray(X, dtype=np.float64)
        out = np.asarray(self.function(x[:, None] if x.ndim == 1 else x))
        return out[:, None] if out.ndim == 1 else out

    def kernel(self, X: Any, Z: Any) -> Any:
        """Inner products of the features, ``(n, m)``."""
        return self(X) @ self(Z).T


@dataclass(frozen=True)
class FourierFeatures:
    r"""Random waves whose inner products approach a stationary kernel,
    :math:`\varphi(x) = \sqrt{2/D}\,(\cos\omega_i^\top x, \sin\omega_i^\top x)_{i \le D/2}`.

    The frequencies are draws of the kernel's spectrum: normal for `RBF`, Student t with 2ν degrees
    of freedom for `Matern` (one for `Laplacian`). The error falls as :math:`1/\sqrt D`.

    Parameters
    ----------
    kernel : `RBF`, `Laplacian` or `Matern`
    n_features : D, even
    random_state : of the frequencies, which stay the same from call to call

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> phi = FourierFeatures(RBF(1.0), 4000, random_state=0)(X)
    >>> bool(np.abs(phi @ phi.T - RBF(1.0)(X)).max() < 0.05)
    True
    """

    kernel: Kernel = field(default_factory=RBF)
    n_features: int = 100
    random_state: RandomState = None

    def __post_init__(self) -> None:
        if self.n_features < 2 or self.n_features % 2:
            raise ValueError(
                f"waves come in pairs: n_features must be even and at least 2, got {self.n_features}"
            )
        if not isinstance(self.kernel, RBF | Matern):
            raise Unsupported(
                f"the spectrum of {self.kernel!r} is not known; choose RBF, Laplacian or Matern"
            )
        object.__setattr__(self, "random_state", Key.of(self.random_state))

    def frequencies(self, d: int) -> NDArray[np.float64]:
        """ω for rows of d features, ``(D/2, d)``."""
        kernel = self.kernel
        rng = Key.of(self.random_state).fold("frequencies", d).numpy()
        waves = rng.standard_normal((self.n_features // 2, d))
        nu = kernel.nu if isinstance(kernel, Matern) else math.inf
        nu = 0.5 if isinstance(kernel, Laplacian) else nu
        if nu < math.inf:
            waves *= np.sqrt(2 * nu / rng.chisquare(2 * nu, len(waves)))[:, None]
        scaled: NDArray[np.float64] = waves / np.asarray(kernel.length_scale)  # type: ignore[attr-defined]
        return scaled

    @takes_arrays("X")
    def __call__(self, X: Any) -> Any:
        """Features of rows ``(n, d)``, ``(n, D)``."""
        x = _rows(X)
        phase = x @ torch.from_numpy(self.frequencies(x.shape[1])).to(x).T
        return torch.cat([phase.cos(), phase.sin()], 1) * math.sqrt(2 / self.n_features)


TaylorFeatures = RBFTaylor
