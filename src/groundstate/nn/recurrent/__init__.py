"""Networks for sequences that read one item after the other."""
