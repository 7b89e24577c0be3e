"""Networks on tokens of texts."""
