"""Tests of nested models."""

from __future__ import annotations

from groundstate.math.stats.linearity import linearity_test, natural_spline
from groundstate.math.stats.nested import FTest, Residuals, nested_f

__all__ = ["FTest", "Residuals", "linearity_test", "natural_spline", "nested_f"]
