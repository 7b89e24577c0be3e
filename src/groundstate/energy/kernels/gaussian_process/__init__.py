"""Gaussian processes: exact, through inducing points, and without a stored covariance."""
