"""Kernel ridge regression and Gaussian processes."""
