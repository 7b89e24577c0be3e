"""Energies whose parameters are rows seen through a kernel."""
