"""Decision trees: cuts, growth, pruning."""
