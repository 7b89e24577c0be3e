"""Rules that lower a bound on −log p with a network that says what the code of a row is."""
