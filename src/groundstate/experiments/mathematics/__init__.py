"""Claims about mathematics: matrices, probability, information, transport, kernels, distances and ODEs."""
