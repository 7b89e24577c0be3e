"""Energies of a map: a row, its place, and the rows and places that are known."""
