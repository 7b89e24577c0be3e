"""Rules that learn from rows with noise in them."""
