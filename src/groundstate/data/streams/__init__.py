"""Tables larger than memory, in chunks with one fixed schema."""
