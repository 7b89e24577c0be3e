"""Clusters, mixtures, factors and Boltzmann machines."""
