"""The linear machine in the primal."""
