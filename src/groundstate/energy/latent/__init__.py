"""Energies with a hidden class or code."""
