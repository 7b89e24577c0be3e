"""The commands that open the web."""
