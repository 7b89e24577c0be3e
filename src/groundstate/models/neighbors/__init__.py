"""Models that remember the rows and ask the nearest of them."""
