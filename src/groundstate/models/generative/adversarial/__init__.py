"""Two players: a generator, and a discriminator that tells its rows from the data."""

from groundstate.models.generative.adversarial.neural_sampler import NeuralSampler as NeuralSampler
