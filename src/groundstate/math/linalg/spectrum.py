"""A part of the eigenvalues of a symmetric matrix in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

F64 = NDArray[np.float64]


def eigenpairs(A: Any, first: int, last: int) -> tuple[F64, F64]:
    """Eigenvalues number ``first`` to ``last`` in ascending order, and their vectors.

    A search for a few finds none where many are equal; then they are taken from all.

    >>> eigenpairs(np.eye(60) - 1 / 60, 58, 59)[0].round(9).tolist()
    [1.0, 1.0]
    """
    values, vectors = eigh(A, subset_by_index=(first, last), check_finite=False)
    if len(values) <= last - first:
        values, vectors = np.linalg.eigh(A)
        values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    return values, vectors
