"""Networks that read the columns of text of a table beside its other columns."""
