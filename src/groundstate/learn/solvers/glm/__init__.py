"""Generalised linear models by reweighted least squares."""
