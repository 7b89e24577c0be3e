"""Generalised linear models: a family, a link, a line."""
