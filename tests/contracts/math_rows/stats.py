"""Statistics."""

from __future__ import annotations

from tests.contracts.math_rows.base import Row

from groundstate import stats

ROWS = [
    Row("stats.cov", stats.cov, lambda rng: (rng.normal(size=(7, 3)),), ("X",)),
]
