"""Where the values come from whose energy a rule raises."""
