"""Energies from energies: sums, multiples, mixtures, committees, variables fixed or removed."""
