"""Models of graphs: Bayesian networks, Markov random fields, hidden Markov chains, circuits."""
