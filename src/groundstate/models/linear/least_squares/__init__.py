"""Squared residuals: least squares, ridge, Bayesian ridge, learned noise, smoothing splines."""
