"""Experiments on the core: energies, learning rules, inference, and what joins them."""
