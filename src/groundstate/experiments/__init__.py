"""The claims of the theory, each a seeded run that ends in a verdict and a picture."""

from __future__ import annotations

from groundstate.experiments.base import Claim, Experiment, Result, experiment, get

__all__ = ["Claim", "Experiment", "Result", "experiment", "get"]
