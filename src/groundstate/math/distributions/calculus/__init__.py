"""Distribution functions and their inverses, integrals under densities, densities on grids."""
