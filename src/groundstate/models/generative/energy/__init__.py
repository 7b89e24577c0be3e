"""Models that are an energy and nothing else: what they generate has to be sampled."""
