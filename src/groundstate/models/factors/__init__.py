"""Linear codes of rows."""
