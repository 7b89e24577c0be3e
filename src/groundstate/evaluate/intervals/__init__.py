"""How sure a score, a coefficient or a prediction is."""
