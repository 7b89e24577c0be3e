"""Arrays in, arrays out: NumPy, torch, frames and sparse at the door of every estimator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, issparse
from torch import Tensor

from groundstate.compute.rows import RowContainer


@dataclass(frozen=True)
class Home:
    """Where answers go back to: NumPy, or torch on the caller's device."""

    device: torch.device | None = None  # None: NumPy

    def give(self, values: Tensor | NDArray[Any]) -> Any:
        """Return values in the caller's kind of array."""
        if self.device is None:
            return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
        if isinstance(values, Tensor):
            return values.detach().to(self.device)
        if values.dtype.kind in "OUS":  # labels that torch cannot hold
            return values
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def unwrap(values: Any) -> tuple[Any, Home]:
    """A torch tensor as NumPy (shared memory on the CPU) and where it came from; others as is."""
    if not isinstance(values, Tensor):
        return values, Home()
    rows = values.detach().cpu()
    if rows.dtype == torch.bfloat16:  # NumPy has no such numbers
        rows = rows.float()
    if rows.layout != torch.strided:
        entries = rows.to_sparse_coo().coalesce()
        found = (entries.values().numpy(), tuple(entries.indices().numpy()))
        return coo_array(found, tuple(rows.shape)).tocsr(), Home(values.device)
    return rows.numpy(), Home(values.device)


def tensor(values: Any, device: torch.device) -> Any:
    """Rows on ``device``, sharing memory where that is possible and safe; CSR stays CSR."""
    if isinstance(values, Tensor):
        return values.to(device)
    if isinstance(values, RowContainer):  # files stay on disk until a batch of them is read
        return values.to(device) if values.in_memory else values
    if issparse(values):
        rows = values.tocsr()
        parts = (rows.indptr, rows.indices, rows.data)
        at, columns, numbers = (tensor(part, torch.device("cpu")) for part in parts)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)  # in beta
            out = torch.sparse_csr_tensor(at.long(), columns.long(), numbers, rows.shape)
        return out if device.type == "cpu" else out.to(device)
    if not values.flags.writeable or not values.flags.c_contiguous or not values.dtype.isnative:
        values = np.array(values, dtype=values.dtype.newbyteorder("="), order="C")
    out = torch.from_numpy(values)
    return out if device.type == "cpu" else out.to(device)


def plain_rows(X: Any, min_rows: int = 1, finite: bool = False) -> bool:
    """Whether X is what validation would return: finite floating rows, contiguous, no frame.

    ``finite``: whether that is known, or will be seen by who sums the rows anyway.

    Looking costs a hundredth of scikit-learn's checks, which small fits would spend most time in;
    whatever is unusual goes there.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.shape[0] >= min_rows
        and X.shape[1] > 0
        and X.flags.c_contiguous
        and (finite or bool(np.isfinite(X.sum())))
    )


def plain_target(y: Any, rows: int, multi_output: bool) -> bool:
    """Whether y is a numeric array that validation would return as it is."""
    return (
        type(y) is np.ndarray
        and (y.ndim == 1 or (multi_output and y.ndim == 2))
        and y.dtype.kind in "fiub"
        and len(y) == rows
        and (y.dtype.kind != "f" or bool(np.isfinite(y.sum())))
    )
