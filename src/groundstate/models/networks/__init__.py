"""Networks for tables."""
