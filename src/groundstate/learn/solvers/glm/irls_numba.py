r"""Sums over rows that a generalised linear model needs, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def sparse_gram(indptr: Any, indices: Any, data: Any, h: Any, out: Any) -> None:
    """Lower triangle of Xᵀ diag(h) X for rows in CSR form with sorted columns."""
    for i in range(len(indptr) - 1):
        for a in range(indptr[i], indptr[i + 1]):
            left = h[i] * data[a]
            row = indices[a]
            for b in range(indptr[i], a + 1):
                out[row, indices[b]] += left * data[b]


@_jit
def scaled_block(x: Any, h: Any, out: Any) -> None:
    """Rows times √h with √h itself in the last column."""
    for i in range(len(x)):
        s = np.sqrt(h[i])
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * s
        out[i, x.shape[1]] = s
