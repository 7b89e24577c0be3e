"""Texts and their tokens."""
