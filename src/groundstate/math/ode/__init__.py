"""Ordinary differential equations: fixed and adaptive steps, with gradients three ways."""

from __future__ import annotations

from groundstate.math.ode.equations import classify_pde, linear
from groundstate.math.ode.integrate import GRADIENTS, METHODS, integrate
from groundstate.math.ode.system import linear_ode, odeint
from groundstate.math.ode.tables import FIXED, Table

__all__ = [
    "FIXED",
    "GRADIENTS",
    "METHODS",
    "Table",
    "classify_pde",
    "integrate",
    "linear",
    "linear_ode",
    "odeint",
]
