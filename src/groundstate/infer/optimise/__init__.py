"""Minimisation over real and mixed variables."""
