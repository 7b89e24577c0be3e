"""`SparseTable`: a numeric matrix that is mostly zeros, kept as it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.data.messages import count
from groundstate.errors import DataError


def is_sparse(value: Any) -> bool:
    """Whether a value is a SciPy sparse matrix or array (without importing SciPy)."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(value))


@dataclass(frozen=True, eq=False, repr=False)
class SparseTable:
    """A sparse matrix with column names and an optional target, never made dense.

    Parameters
    ----------
    matrix
        SciPy sparse matrix or array (n, d); kept in CSR form as float64, all entries finite.
    y
        Target values (n,), or None.
    names
        Column names (d,); ``x0, x1, …`` by default.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> SparseTable(csr_array([[0, 1.0], [2.0, 0]]), y=[0, 1])
    SparseTable(2 rows × 2 columns, 2 entries that are not zero)
    """

    matrix: Any
    y: NDArray[Any] | None = None
    names: tuple[str, ...] = ()

    def __init__(
        self, matrix: Any, y: ArrayLike | None = None, names: Sequence[str] | None = None
    ) -> None:
        if not is_sparse(matrix) or matrix.ndim != 2:
            raise DataError(
                f"SparseTable needs a two-dimensional SciPy sparse matrix, got "
                f"{type(matrix).__name__}; pass dense arrays to data.read"
            )
        if matrix.dtype.kind not in "biuf":
            raise DataError(f"SparseTable needs real numbers, got {matrix.dtype}")
        csr = matrix.tocsr().astype(np.float64)
        if 0 in csr.shape:
            raise DataError(f"SparseTable is empty: its shape is {csr.shape}")
        if not np.isfinite(csr.data).all():
            raise DataError("SparseTable holds NaN or infinite entries; zero or drop them first")
        labels = None if y is None else np.asarray(y)
        if labels is not None and labels.shape != (csr.shape[0],):
            raise DataError(f"y has shape {labels.shape} for {count(csr.shape[0], 'row')}")
        columns = tuple(names) if names is not None else tuple(f"x{i}" for i in range(csr.shape[1]))
        if len(columns) != csr.shape[1] or len(set(columns)) < len(columns):
            raise DataError(f"names must be {csr.shape[1]} different column names")
        object.__setattr__(self, "matrix", csr)
        object.__setattr__(self, "y", labels)
        object.__setattr__(self, "names", columns)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def take(self, rows: ArrayLike) -> SparseTable:
        """The rows at the given positions, or where a mask holds."""
        index = np.asarray(rows)
        y = None if self.y is None else self.y[index]
        return SparseTable(self.matrix[index], y, self.names)

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        size = f"{count(self.n_rows, 'row')} × {count(self.n_columns, 'column')}"
        filled = count(self.matrix.nnz, "entry that is", "entries that are")
        return f"SparseTable({size}, {filled} not zero)"
