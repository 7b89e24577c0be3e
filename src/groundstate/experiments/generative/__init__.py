"""Experiments on models that generate."""
