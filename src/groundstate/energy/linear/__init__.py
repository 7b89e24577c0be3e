"""Energies of a linear score."""
