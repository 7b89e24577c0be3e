"""Models without labels: likelihood of held-out rows, distances of samples, coverage, memorisation."""
