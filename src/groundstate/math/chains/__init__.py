"""Markov chains and chain-structured distributions, and how far draws can be trusted."""
