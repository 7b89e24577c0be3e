"""Which model is better: paired tests, recipes, many models, many tables, baselines."""
