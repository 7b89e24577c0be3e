"""Optimal transport: exact plans, Sinkhorn, barycentres and displacement interpolation."""
