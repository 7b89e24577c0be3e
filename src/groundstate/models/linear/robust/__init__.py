"""Losses of a residual that outliers pull on less: Huber and quantiles."""
