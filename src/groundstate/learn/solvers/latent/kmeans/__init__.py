"""Lloyd's algorithm with bounds, and its starts."""
