"""A table without a target: its density, groups, odd rows, missing cells and map."""
