"""Reading any source of rows and columns into a validated table."""
