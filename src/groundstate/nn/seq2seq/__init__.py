"""Networks from a source sequence to a target sequence of another length."""
