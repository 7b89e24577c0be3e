"""Models without labels: likelihood of held-out rows, look-alikes, memorisation."""
