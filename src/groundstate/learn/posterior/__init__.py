"""Distributions over hidden variables and over parameters, and gradients through them."""
