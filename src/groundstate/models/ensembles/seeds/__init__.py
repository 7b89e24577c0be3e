"""Ensembles of seeds: one estimator that differs in its randomness alone."""
