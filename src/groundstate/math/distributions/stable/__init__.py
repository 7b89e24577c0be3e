"""Stable distributions and Lévy's."""

from groundstate.math.distributions.stable.levy import Levy
from groundstate.math.distributions.stable.stable import Stable

__all__ = ["Levy", "Stable"]
