"""Snapshots of one stochastic run as members."""
