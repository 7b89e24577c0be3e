r"""The Gaussian process that predicts the risk of settings: Matérn-5/2, one length per setting.

.. math::
    k(u, u') = \sigma^2\bigl(1 + \sqrt5 r + \tfrac53 r^2\bigr)e^{-\sqrt5 r}, \qquad
    r^2 = \sum_j \frac{d_j(u_j, u'_j)^2}{\ell_j^2},

with :math:`d_j` the distance in the unit cube (0 or 1 between categories) and noise on the diagonal.
Lengths, scale and noise maximise the marginal likelihood times weak priors, with exact gradients.
Small and float64 throughout: a study has tens to hundreds of trials, so that the cost is overhead,
not arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs
from scipy.optimize import minimize

Floats = NDArray[np.float64]

_ROOT5 = math.sqrt(5.0)
_JITTER = 1e-8
_LENGTH = (math.log(0.03), math.log(30.0))
_SCALE = (math.log(0.05), math.log(20.0))
_NOISE = (math.log(1e-6), math.log(1.0))


@dataclass(frozen=True)
class Prior:
    """Normal priors on the logarithms of length, scale and noise: (mean, standard deviation)."""

    length: tuple[float, float]
    scale: tuple[float, float] = (0.0, 1.0)
    noise: tuple[float, float] = (math.log(1e-4), 3.0)

    @classmethod
    def of(cls, dim: int) -> Prior:
        """Lengths grow like the diagonal of the cube, the root of its dimension."""
        return cls((math.log(0.22) + 0.5 * math.log(max(dim, 1)), 0.8))


class Process:
    """Gaussian process on rows of the embedded unit cube.

    Parameters
    ----------
    Z : (n, c)
        Embedded settings.
    y : (n,)
        Standardised risks.
    groups : (c,)
        To which setting each column belongs.
    theta : (d + 2,)
        Logarithms of the d lengths, the signal variance and the noise variance.
    """

    def __init__(self, Z: Floats, y: Floats, groups: NDArray[np.intp], theta: Floats) -> None:
        self.Z, self.y, self.groups, self.theta = Z, y, groups, theta
        d = len(theta) - 2
        self.inverse = np.exp(-theta[:d])[groups]  # (c,)
        self.scale = math.exp(theta[d])
        self.noise = math.exp(theta[d + 1])
        self.mean = 0.0
        self.scaled = Z * self.inverse  # (n, c)
        self.squares = np.einsum("ij,ij->i", self.scaled, self.scaled)
        K = self._kernel(self.scaled, self.squares)[0]
        K[np.diag_indices(len(K))] += self.noise + _JITTER * self.scale
        self.L = _cholesky(K)
        self._solve()

    def _solve(self) -> None:
        ones = np.ones(len(self.y))
        half = _lower(self.L, np.stack([self.y, ones], 1))
        # the mean is integrated out under a unit normal prior
        self.mean = float(half[:, 1] @ half[:, 0] / (half[:, 1] @ half[:, 1] + 1.0))
        self.weights = _lower(self.L, half[:, 0] - self.mean * half[:, 1], transposed=True)

    def _kernel(self, scaled: Floats, squares: Floats) -> tuple[Floats, Floats, Floats]:
        """Kernel between rows and the data, and what its slope needs.  # (m, n) each"""
        r2 = squares[:, None] + self.squares - 2.0 * (scaled @ self.scaled.T)
        np.maximum(r2, 0.0, out=r2)
        t = _ROOT5 * np.sqrt(r2)
        decay = np.exp(-t)
        slope = (1.0 + t) * decay
        return self.scale * (slope + (5.0 / 3.0) * r2 * decay), slope, r2

    def predict(self, Z: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the noiseless risk.  # (m,), (m,)"""
        scaled = Z * self.inverse
        K, _, _ = self._kernel(scaled, np.einsum("ij,ij->i", scaled, scaled))
        half = _lower(self.L, K.T)
        variance = self.scale - np.einsum("ij,ij->j", half, half)
        return self.mean + K @ self.weights, np.sqrt(np.maximum(variance, 1e-12))

    def slopes(self, Z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean, standard deviation and their gradients.  # (m,), (m,), (m, c), (m, c)"""
        scaled = Z * self.inverse
        K, slope, _ = self._kernel(scaled, np.einsum("ij,ij->i", scaled, scaled))
        half = _lower(self.L, K.T)
        variance = np.maximum(self.scale - np.einsum("ij,ij->j", half, half), 1e-12)
        std = np.sqrt(variance)
        back = _lower(self.L, half, transposed=True).T  # (m, n)
        # dk/du = -(5/3) scale (1 + t) e^-t (u - u') / l^2
        factor = -(5.0 / 3.0) * self.scale
        rise = factor * slope * self.weights
        fall = factor * slope * back
        dm = (rise.sum(1)[:, None] * scaled - rise @ self.scaled) * self.inverse
        dv = (fall.sum(1)[:, None] * scaled - fall @ self.scaled) * self.inverse
        return self.mean + K @ self.weights, std, dm, -dv / std[:, None]

    def append(self, z: Floats) -> Process:
        """The process that also knows ``z`` with its predicted mean, by one more Cholesky row.

        The mean surface stays; the variance near ``z`` falls.
        """
        scaled = z[None] * self.inverse
        K, _, _ = self._kernel(scaled, np.einsum("ij,ij->i", scaled, scaled))
        row = _lower(self.L, K.T)[:, 0]
        corner = self.scale * (1.0 + _JITTER) + self.noise - row @ row
        n = len(self.y)
        L = np.zeros((n + 1, n + 1), order="F")
        L[:n, :n] = self.L
        L[n, :n] = row
        L[n, n] = math.sqrt(max(float(corner), 1e-10))
        new = object.__new__(Process)
        new.__dict__.update(self.__dict__)
        new.Z = np.concatenate([self.Z, z[None]])
        new.y = np.append(self.y, self.mean + K[0] @ self.weights)
        new.scaled = np.concatenate([self.scaled, scaled])
        new.squares = np.append(self.squares, np.einsum("ij,ij->i", scaled, scaled))
        new.L = L
        new.weights = np.append(self.weights, 0.0)  # its residual is zero: nothing else moves
        return new


def fit_process(
    Z: Floats,
    y: Floats,
    groups: NDArray[np.intp],
    start: Floats | None = None,
    max_iter: int = 40,
    fixed: bool = False,
) -> Process:
    """Learn lengths, scale and noise, from ``start`` and from the prior's mode.

    Parameters
    ----------
    Z, y, groups : as in :class:`Process`
    start : (d + 2,), optional
        Where the last fit ended.
    fixed : take ``start`` as it is
    """
    d = int(groups.max()) + 1
    if start is not None and fixed:
        return Process(Z, y, groups, np.asarray(start, np.float64))
    prior = Prior.of(d)
    objective = _Objective(Z, y, groups, prior)
    bounds = [_LENGTH] * d + [_SCALE, _NOISE]
    mode = np.array([prior.length[0]] * d + [prior.scale[0], math.log(1e-3)])
    starts = [mode] if start is None else [np.asarray(start, np.float64), mode]
    found: list[tuple[float, Floats]] = []
    for begin in starts:
        low, high = np.array(bounds).T
        result = minimize(
            objective, np.clip(begin, low, high), jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": max_iter, "maxcor": 8, "ftol": 1e-7, "gtol": 1e-3},
        )  # fmt: skip
        found.append((float(result.fun), np.asarray(result.x)))
    theta = min(found, key=lambda row: row[0])[1]
    return Process(Z, y, groups, theta)


class _Objective:
    """Negative log marginal likelihood minus log prior, with its gradient."""

    def __init__(self, Z: Floats, y: Floats, groups: NDArray[np.intp], prior: Prior) -> None:
        n, d = len(Z), int(groups.max()) + 1
        squares = np.zeros((d, n, n))
        for column, group in enumerate(groups):
            squares[group] += np.square(Z[:, None, column] - Z[None, :, column])
        self.squares = squares.reshape(d, n * n)
        self.y, self.n, self.d = y, n, d
        self.diagonal = np.diag_indices(n)
        self.mean = np.array([prior.length[0]] * d + [prior.scale[0], prior.noise[0]])
        self.std = np.array([prior.length[1]] * d + [prior.scale[1], prior.noise[1]])

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        n, d = self.n, self.d
        precision = np.exp(-2.0 * theta[:d])
        scale, noise = math.exp(theta[d]), math.exp(theta[d + 1])
        r2 = (precision @ self.squares).reshape(n, n)
        t = _ROOT5 * np.sqrt(r2)
        decay = np.exp(-t)
        slope = (1.0 + t) * decay
        signal = scale * (slope + (5.0 / 3.0) * r2 * decay)
        K = signal + 1.0  # the mean, a unit normal, is integrated out
        K[self.diagonal] += noise + _JITTER * scale
        L, info = dpotrf(K, lower=1, clean=0, overwrite_a=1)
        if info:
            return 1e10, np.zeros(d + 2)
        logdet = 2.0 * np.log(L[self.diagonal]).sum()
        A, _ = dpotri(L, lower=1, overwrite_c=1)
        A = np.tril(A) + np.tril(A, -1).T
        a = A @ self.y
        value = 0.5 * (self.y @ a + logdet)
        A -= np.outer(a, a)
        gradient = np.empty(d + 2)
        inner = (A * slope).reshape(-1)
        gradient[:d] = (0.5 * (5.0 / 3.0) * scale) * precision * (self.squares @ inner)
        trace = A[self.diagonal].sum()
        gradient[d] = 0.5 * (np.vdot(A, signal) + _JITTER * scale * trace)
        gradient[d + 1] = 0.5 * noise * trace
        pull = (theta - self.mean) / self.std
        return float(value + 0.5 * pull @ pull), gradient + pull / self.std


def _cholesky(K: Floats) -> Floats:
    """Lower factor, with as much more jitter as it takes."""
    extra = 0.0
    while True:
        A = K.copy()
        A[np.diag_indices(len(A))] += extra
        L, info = dpotrf(A, lower=1, clean=1)
        if info == 0:
            return np.asarray(L)
        extra = max(10.0 * extra, 1e-8)


def _lower(L: Floats, B: Floats, transposed: bool = False) -> Floats:
    solution, _ = dtrtrs(L, B, lower=1, trans=1 if transposed else 0)
    return np.asarray(solution)
