"""Bias and variance, noise floors, capacity and guarantees."""
