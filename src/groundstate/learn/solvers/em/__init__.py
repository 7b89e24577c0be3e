"""Expectation maximisation."""
