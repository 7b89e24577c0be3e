"""Energies whose scores come from a network."""
