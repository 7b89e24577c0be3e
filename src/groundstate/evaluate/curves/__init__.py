"""Risk against rows, settings and capacity, and what the curves say about a fit."""
