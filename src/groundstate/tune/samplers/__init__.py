"""Samplers for Optuna studies, and what they are made of."""
