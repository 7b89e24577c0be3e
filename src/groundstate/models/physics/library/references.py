r"""Reference solutions of the library, at points ``(n, d)``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dstn, idstn

from groundstate.math.ode import integrate

if TYPE_CHECKING:
    from groundstate.models.physics.problem import Problem

Array = NDArray[np.float64]
NODES = 150  # of the quadrature
GRID = 128  # intervals of the 5-point scheme
MODES, STEPS = 512, 2000  # of the spectral solver


def _number(problem: Problem, name: str) -> float:
    value = problem.parameters[name]
    if value is None:
        raise ValueError(f"the reference solution needs {name}, which is unknown; pass its value")
    return float(value)


def burgers(problem: Problem, X: Array) -> Array:
    """By the transform of Cole and Hopf, whose integrals are Gauss-Hermite sums."""
    return cole_hopf(_number(problem, "nu"), X[:, 0], X[:, 1])


def cole_hopf(nu: float, t: Array, x: Array, slope: bool = False) -> Array:
    r"""u, or :math:`u_x`, of Burgers' equation from :math:`-\sin\pi x` at times t and places x.

    .. math:: u = -\frac{\int\sin\pi y\,e^{-G}d\eta}{\int e^{-G}d\eta}, \qquad
        G = \frac{\cos\pi y}{2\pi\nu} + \frac{\eta^2}{4\nu t}, \quad y = x - \eta .
    """
    z, w = np.polynomial.hermite.hermgauss(NODES)
    y = x[:, None] - z * np.sqrt(4 * nu * np.maximum(t, 0))[:, None]
    log = np.log(w) - np.cos(np.pi * y) / (2 * np.pi * nu)
    p = np.exp(log - log.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    s = np.sin(np.pi * y)
    u = -(p * s).sum(1)
    if not slope:
        return np.asarray(u)
    # d/dx of a mean under p ∝ e^{-G}: the mean slope plus a covariance with sin(πy)/(2ν)
    mean_slope = -(p * np.pi * np.cos(np.pi * y)).sum(1)
    covariance = (p * s * s).sum(1) - u**2
    return np.asarray(mean_slope - covariance / (2 * nu))


def burgers_steepest(nu: float) -> tuple[float, float]:
    """The largest slope |u_x(t, 0)| and when."""
    from scipy.optimize import minimize_scalar

    zero = np.zeros(1)
    found = minimize_scalar(
        lambda t: float(cole_hopf(nu, np.array([t]), zero, slope=True)[0]),
        bounds=(0.2, 0.9), method="bounded", options={"xatol": 1e-8},
    )  # fmt: skip
    return -float(found.fun), float(found.x)


def five_point(f: Array, h: float) -> Array:
    r"""u with :math:`\Delta_hu = f` at the inner points of a square grid and zero around it, by sine
    transforms: the eigenvalues of the scheme are :math:`-(4/h^2)(\sin^2 + \sin^2)`.
    """
    n = f.shape[0] + 1
    k = np.arange(1, n)
    eigen = -(4 / h**2) * np.sin(np.pi * k / (2 * n)) ** 2
    return np.asarray(idstn(dstn(f, type=1) / (eigen[:, None] + eigen[None, :]), type=1))


def poisson2d(problem: Problem, X: Array) -> Array:
    from scipy.interpolate import RectBivariateSpline

    axis = np.linspace(0, 1, GRID + 1)
    inner = np.stack(np.meshgrid(axis[1:-1], axis[1:-1], indexing="ij"), -1).reshape(-1, 2)
    # the residual of u = 0 is -f
    f = -problem.residual_of(lambda p: 0.0 * p[:, :1], inner)[:, 0]
    u = np.zeros((GRID + 1, GRID + 1))
    u[1:-1, 1:-1] = five_point(f.reshape(GRID - 1, GRID - 1), 1 / GRID)
    return np.asarray(RectBivariateSpline(axis, axis, u)(X[:, 0], X[:, 1], grid=False))


def heat(problem: Problem, X: Array) -> Array:
    decay = np.exp(-_number(problem, "a") * np.pi**2 * X[:, 0])
    return np.asarray(decay * np.sin(np.pi * X[:, 1]))


def wave(problem: Problem, X: Array) -> Array:
    return np.asarray(np.sin(np.pi * X[:, 1]) * np.cos(_number(problem, "c") * np.pi * X[:, 0]))


def allen_cahn(problem: Problem, X: Array) -> Array:
    from scipy.interpolate import RectBivariateSpline

    T = problem.domain.high[0]
    x = -1 + 2 * np.arange(MODES) / MODES
    times, states = etdrk4(
        x**2 * np.cos(np.pi * x), -_number(problem, "d") * (np.pi * _waves(MODES)) ** 2 + 5.0,
        lambda u: -5 * u**3, T, STEPS, keep=200,
    )  # fmt: skip
    closed = np.concatenate([states, states[:, :1]], 1)
    ends = np.append(x, 1.0)
    return np.asarray(RectBivariateSpline(times, ends, closed)(X[:, 0], X[:, 1], grid=False))


def _waves(n: int) -> Array:
    return np.asarray(np.fft.fftfreq(n, 1 / n))


def etdrk4(
    u: Array, linear: Array, nonlinear: Any, T: float, steps: int, keep: int
) -> tuple[Array, Array]:
    """Fourier modes in time: the linear part exactly, the rest by Runge-Kutta (Kassam, Trefethen 2005)."""
    h = T / steps
    circle = np.exp(1j * np.pi * (np.arange(1, 33) - 0.5) / 32)
    LR = h * linear[:, None] + circle
    E, E2 = np.exp(h * linear), np.exp(h * linear / 2)
    Q = h * ((np.exp(LR / 2) - 1) / LR).mean(1).real
    f1 = h * ((-4 - LR + np.exp(LR) * (4 - 3 * LR + LR**2)) / LR**3).mean(1).real
    f2 = h * ((2 + LR + np.exp(LR) * (LR - 2)) / LR**3).mean(1).real
    f3 = h * ((-4 - 3 * LR - LR**2 + np.exp(LR) * (4 - LR)) / LR**3).mean(1).real
    v = np.fft.fft(u)

    def N(w: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return np.asarray(np.fft.fft(nonlinear(np.fft.ifft(w).real)))

    every = max(1, steps // keep)
    times, states = [0.0], [u]
    for step in range(1, steps + 1):
        Nv = N(v)
        a = E2 * v + Q * Nv
        Na = N(a)
        b = E2 * v + Q * Na
        Nb = N(b)
        Nc = N(E2 * a + Q * (2 * Nb - Nv))
        v = E * v + Nv * f1 + 2 * (Na + Nb) * f2 + Nc * f3
        if step % every == 0 or step == steps:
            times.append(step * h)
            states.append(np.fft.ifft(v).real)
    return np.array(times), np.array(states)


def helmholtz(problem: Problem, X: Array) -> Array:
    a, b = _number(problem, "a"), _number(problem, "b")
    return np.asarray(np.sin(a * np.pi * X[:, 0]) * np.sin(b * np.pi * X[:, 1]))


def harmonic(problem: Problem, X: Array) -> Array:
    return np.asarray(np.cos(_number(problem, "omega") * X[:, 0]))


def logistic(problem: Problem, X: Array) -> Array:
    r, K = _number(problem, "r"), _number(problem, "K")
    u0 = float(problem.conditions[0].value)  # type: ignore[union-attr]
    return np.asarray(K / (1 + (K / u0 - 1) * np.exp(-r * X[:, 0])))


def lotka_volterra(problem: Problem, X: Array) -> Array:
    a, b, c, d = (_number(problem, n) for n in "abcd")
    start = [float(condition.value) for condition in problem.conditions]  # type: ignore[union-attr]
    times, back = np.unique(np.append(0.0, X[:, 0]), return_inverse=True)
    if math.isclose(times[-1], 0.0):
        return np.tile(start, (len(X), 1))

    def slope(t: Any, y: Any) -> Any:
        return np.stack([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])

    states = integrate(slope, start, times, "dopri5", rtol=1e-10, atol=1e-12)
    return np.asarray(states[back[1:]])
