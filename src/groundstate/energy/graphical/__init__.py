"""Energies that are sums over the nodes or factors of a graph."""
