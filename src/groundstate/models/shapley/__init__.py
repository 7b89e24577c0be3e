"""Why this prediction: Shapley values of the columns of a table."""

from __future__ import annotations

from groundstate.models.shapley.values import ShapleyValues as ShapleyValues
from groundstate.models.shapley.values import shapley_values as shapley_values
