"""A code, a network that decodes it and a likelihood: the energy of variational autoencoders."""
