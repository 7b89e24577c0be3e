"""Coefficients that are exactly zero: the lasso, the elastic net and their paths."""
