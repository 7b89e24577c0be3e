"""From columns to numbers, learned from training rows only."""
