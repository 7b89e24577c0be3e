"""Energies of remembered rows."""
