r"""Undirected energies: layers that interact across, without an order of cause and effect."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.energy.undirected.restricted import RestrictedEnergy as RestrictedEnergy

lazy(__name__)
