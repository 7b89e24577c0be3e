"""Draws: exact moves, Markov chains, importance weights."""
