"""Learned distances: linear metrics from labels, local metrics and densities on them."""
