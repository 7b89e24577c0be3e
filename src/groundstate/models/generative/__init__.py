"""Models that generate: one contract, whatever the family."""
