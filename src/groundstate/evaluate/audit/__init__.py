"""What spoils an evaluation: leaks, contamination, shift, and test rows looked at too often."""
