"""Arrays in, arrays out: NumPy, torch, frames and sparse at the door of every estimator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor


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
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy(), Home(values.device)
    return values, Home()


def tensor(values: Any, device: torch.device) -> Tensor:
    """A tensor on ``device``, sharing memory where that is possible and safe; CSR stays CSR."""
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
