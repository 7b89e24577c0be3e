"""Bagging: one estimator on drawn rows and columns."""
