"""Why this prediction: Shapley values of the columns of a table."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.models.shapley.values import ShapleyValues as ShapleyValues
    from groundstate.models.shapley.values import shapley_values as shapley_values

lazy(__name__)
