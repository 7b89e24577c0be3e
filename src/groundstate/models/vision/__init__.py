"""Models of pictures."""
