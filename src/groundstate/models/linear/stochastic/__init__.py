"""Lines learned a few rows at a time: stochastic descent and the perceptron."""
