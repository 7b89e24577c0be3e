"""Quantiles of weighted rows are those of repeated rows."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.math.stats.quantiles import repeated_quantile


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_is_a_number_of_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, w = rng.normal(size=30).round(1), rng.integers(0, 4, 30)
    q = np.array([0.0, 0.1, 0.37, 0.5, 1.0])
    expected = np.quantile(np.repeat(values, w), q)
    np.testing.assert_allclose(repeated_quantile(values, w.astype(float), q), expected, atol=1e-12)
    each = [repeated_quantile(values, w.astype(float), one) for one in q]
    np.testing.assert_allclose(each, expected, atol=1e-12)
    np.testing.assert_allclose(repeated_quantile(values, None, q), np.quantile(values, q))
