r"""Undirected energies: layers that interact across, without an order of cause and effect."""

from groundstate.energy.undirected.restricted import RestrictedEnergy as RestrictedEnergy
