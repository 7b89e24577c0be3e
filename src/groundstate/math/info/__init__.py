"""Information: entropies, divergences, impurities and free energies."""
