"""Architectures by name: whole networks for images."""
