"""Solvers: algorithms that lower the loss of one form of energy."""
