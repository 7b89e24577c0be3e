r"""Feature maps :math:`\varphi` written out: their inner products are kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


@lru_cache(maxsize=64)
def _powers(d: int, degree: int) -> tuple[tuple[int, ...], ...]:
    """Exponents of all monomials of one degree; pure powers first."""
    found = []
    for chosen in combinations_with_replacement(range(d), degree):
        found.append(tuple(chosen.count(j) for j in range(d)))
    return tuple(sorted(found, key=lambda p: (sum(e > 0 for e in p), [-e for e in p])))


def _monomials(x: F64, degree: int) -> F64:
    r"""Monomials with :math:`\sqrt{\text{multinomial}}`, whose inner product is
    :math:`(x^\top z)^{\text{degree}}`."""
    columns = []
    for powers in _powers(x.shape[1], degree):
        ways = math.factorial(degree) / math.prod(math.factorial(e) for e in powers)
        column = np.full(len(x), math.sqrt(ways))
        for j, e in enumerate(powers):
            if e:
                column = column * x[:, j] ** e
        columns.append(column)
    return np.stack(columns, 1)


def _rows(X: Any) -> F64:
    x: F64 = np.asarray(X, dtype=np.float64)
    return x[:, None] if x.ndim == 1 else x


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

    def __call__(self, X: Any) -> F64:
        """Features of rows ``(n, p)``, ``(n, number of monomials up to the degree)``."""
        x = _rows(X)
        parts = []
        for k in range(self.degree, -1, -1):
            if k < self.degree and self.coef0 == 0:
                break
            scale = math.comb(self.degree, k) * self.gamma**k * self.coef0 ** (self.degree - k)
            parts.append(math.sqrt(scale) * _monomials(x, k))
        return np.concatenate(parts, 1)


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

    def __call__(self, X: Any) -> F64:
        """Features of rows ``(n, p)``."""
        x = _rows(X)
        decay = np.exp(-self.gamma * (x * x).sum(1))[:, None]
        terms = [
            math.sqrt((2 * self.gamma) ** k / math.factorial(k)) * _monomials(x, k)
            for k in range(self.order + 1)
        ]
        return decay * np.concatenate(terms, 1)


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

    function: Callable[[F64], Any]

    def __call__(self, X: Any) -> F64:
        return _rows(self.function(_rows(X)))

    def kernel(self, X: Any, Z: Any) -> F64:
        """Inner products of the features, ``(n, m)``."""
        return self(X) @ self(Z).T


__all__ = ["Lift", "PolynomialKernelMap", "RBFTaylor"]
