"""Tables that ship with the package or are generated from a seed."""
