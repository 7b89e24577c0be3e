"""Mixture densities."""
