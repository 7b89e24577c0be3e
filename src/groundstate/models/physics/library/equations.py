r"""The library: each function makes one problem."""

from __future__ import annotations

import math
from typing import Any

from groundstate.models.physics.conditions import Dirichlet, Initial, Periodic
from groundstate.models.physics.domain import Box
from groundstate.models.physics.problem import Problem


def burgers(nu: float | None = 0.01 / math.pi, T: float = 1.0) -> Problem:
    r"""Waves that steepen: :math:`u_t + uu_x = \nu u_{xx}`, :math:`u(0, x) = -\sin\pi x`, zero at
    :math:`x = \pm1`. Reference: Cole and Hopf's transform with Gauss-Hermite quadrature.

    >>> burgers().solution([[0.5, 0.25]]).round(6).tolist()
    [-0.847355]
    """
    return Problem(
        Box(t=(0.0, T), x=(-1.0, 1.0)), "u.t + u*u.x - nu*u.xx",
        [Initial("-sin(pi*x)"), Dirichlet("x=-1, x=1", 0.0)],
        {"nu": nu}, positive=("nu",), start={"nu": 0.1}, reference="burgers", name="burgers",
    )  # fmt: skip


def poisson2d(f: str = "-2*pi**2*sin(pi*x)*sin(pi*y)") -> Problem:
    r""":math:`\Delta u = f` on the unit square, zero on its border. Reference: the 5-point scheme, solved
    by sine transforms.

    Parameters
    ----------
    f : text of x and y; by default the solution is :math:`\sin\pi x\sin\pi y`
    """
    return Problem(
        Box(x=(0.0, 1.0), y=(0.0, 1.0)), f"u.xx + u.yy - ({f})", [Dirichlet("boundary", 0.0)],
        reference="poisson2d", name="poisson2d",
    )  # fmt: skip


def heat(a: float | None = 0.1, T: float = 1.0) -> Problem:
    r""":math:`u_t = au_{xx}` on [0, 1], :math:`u(0, x) = \sin\pi x`, zero at both ends. Reference:
    :math:`e^{-a\pi^2t}\sin\pi x`.
    """
    return Problem(
        Box(t=(0.0, T), x=(0.0, 1.0)), "u.t - a*u.xx",
        [Initial("sin(pi*x)"), Dirichlet("boundary", 0.0)],
        {"a": a}, positive=("a",), reference="heat", name="heat",
    )  # fmt: skip


def wave(c: float | None = 1.0, T: float = 1.0) -> Problem:
    r""":math:`u_{tt} = c^2u_{xx}` on [0, 1], a string plucked to :math:`\sin\pi x` and let go. Reference:
    :math:`\sin\pi x\cos c\pi t`.
    """
    return Problem(
        Box(t=(0.0, T), x=(0.0, 1.0)), "u.tt - c**2*u.xx",
        [Initial("sin(pi*x)"), Initial(0.0, order=1), Dirichlet("boundary", 0.0)],
        {"c": c}, positive=("c",), reference="wave", name="wave",
    )  # fmt: skip


def allen_cahn(d: float | None = 1e-4, T: float = 1.0) -> Problem:
    r"""Phases that separate: :math:`u_t = du_{xx} + 5u - 5u^3` on [−1, 1], periodic, from
    :math:`x^2\cos\pi x`. Reference: Fourier modes with exponential time differences of order 4.
    """
    return Problem(
        Box(t=(0.0, T), x=(-1.0, 1.0)), "u.t - d*u.xx - 5*u + 5*u**3",
        [Initial("x**2*cos(pi*x)"), Periodic("x")],
        {"d": d}, positive=("d",), reference="allen_cahn", name="allen_cahn",
    )  # fmt: skip


def helmholtz(k: float = 1.0, a: int = 1, b: int = 4) -> Problem:
    r""":math:`\Delta u + k^2u = q` on :math:`[-1, 1]^2`, zero on the border, with q such that
    :math:`u = \sin a\pi x\sin b\pi y`, which is the reference.
    """
    q = f"(k**2 - {a * a + b * b}*pi**2)*sin({a}*pi*x)*sin({b}*pi*y)"
    return Problem(
        Box(x=(-1.0, 1.0), y=(-1.0, 1.0)), f"u.xx + u.yy + k**2*u - {q}",
        [Dirichlet("boundary", 0.0)], {"k": k, "a": float(a), "b": float(b)},
        reference="helmholtz", name="helmholtz",
    )  # fmt: skip


def harmonic(omega: float | None = 1.0, T: float = 2 * math.pi) -> Problem:
    r"""A spring: :math:`\ddot u + \omega^2u = 0`, :math:`u(0) = 1`, :math:`\dot u(0) = 0`. Reference:
    :math:`\cos\omega t`.
    """
    return Problem(
        Box(t=(0.0, T)), "u.tt + omega**2*u", [Initial(1.0), Initial(0.0, order=1)],
        {"omega": omega}, positive=("omega",), reference="harmonic", name="harmonic",
    )  # fmt: skip


def logistic(
    r: float | None = 1.0, K: float | None = 1.0, u0: float = 0.1, T: float = 6.0
) -> Problem:
    r"""Growth with a limit: :math:`\dot u = ru(1 - u/K)`, :math:`u(0) = u_0`. Reference:
    :math:`K/(1 + (K/u_0 - 1)e^{-rt})`.
    """
    return Problem(
        Box(t=(0.0, T)), "u.t - r*u*(1 - u/K)", [Initial(u0)], {"r": r, "K": K},
        positive=("r", "K"), reference="logistic", name="logistic",
    )  # fmt: skip


def lotka_volterra(
    a: float | None = 1.0, b: float | None = 1.0, c: float | None = 1.0, d: float | None = 1.0,
    start: tuple[float, float] = (1.5, 0.75), T: float = 6.0,
) -> Problem:  # fmt: skip
    r"""Prey and hunters: :math:`\dot u = au - buv`, :math:`\dot v = duv - cv`. Reference: dopri5."""
    coefficients: dict[str, Any] = {"a": a, "b": b, "c": c, "d": d}
    return Problem(
        Box(t=(0.0, T)), ["u.t - a*u + b*u*v", "v.t - d*u*v + c*v"],
        [Initial(start[0], "u"), Initial(start[1], "v")], coefficients, ("u", "v"),
        positive=("a", "b", "c", "d"), reference="lotka_volterra", name="lotka_volterra",
    )  # fmt: skip
