"""Rules for energies with an encoder: reconstruct, from worse rows, with penalties on the code."""
