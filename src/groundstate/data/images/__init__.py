"""Pictures in arrays and in files."""
