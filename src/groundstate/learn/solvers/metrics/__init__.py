"""Learning a metric: maps under which rows of one class are near each other."""
