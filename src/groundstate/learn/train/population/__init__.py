"""Many models trained as one tensor program."""
