"""Energies of sequences: chains, and symbol by symbol."""
