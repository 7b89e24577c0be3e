"""Generative classifiers with independent features."""
