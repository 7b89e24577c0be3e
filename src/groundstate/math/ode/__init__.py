"""Ordinary differential equations: fixed and adaptive steps, with gradients three ways."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.ode.equations import classify_pde as classify_pde
    from groundstate.math.ode.equations import linear as linear
    from groundstate.math.ode.integrate import GRADIENTS as GRADIENTS
    from groundstate.math.ode.integrate import METHODS as METHODS
    from groundstate.math.ode.integrate import integrate as integrate
    from groundstate.math.ode.system import linear_ode as linear_ode
    from groundstate.math.ode.system import odeint as odeint
    from groundstate.math.ode.tables import FIXED as FIXED
    from groundstate.math.ode.tables import Table as Table

lazy(__name__)
