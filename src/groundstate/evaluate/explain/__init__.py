"""What a model looks at, and the columns themselves: importance, dependence, profiles, drift."""
