"""Stable distributions and Lévy's."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.distributions.stable.levy import Levy as Levy
    from groundstate.math.distributions.stable.stable import Stable as Stable

lazy(__name__)
