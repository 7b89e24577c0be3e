"""Forests, boosting, bags, votes and ensembles of networks."""
