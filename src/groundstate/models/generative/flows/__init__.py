"""Normalising flows: exact densities by change of variables."""
