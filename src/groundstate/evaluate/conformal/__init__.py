"""Sets and intervals that hold the truth at a stated rate."""
