"""Linear and generalised linear models."""
