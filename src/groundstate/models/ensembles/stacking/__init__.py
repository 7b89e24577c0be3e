"""Stacking: an estimator that learns from the answers of others."""
