"""Sequential minimal optimisation of the dual with kernels."""
