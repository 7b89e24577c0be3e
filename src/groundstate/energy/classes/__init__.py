"""Energies of classes through the density of their features."""
