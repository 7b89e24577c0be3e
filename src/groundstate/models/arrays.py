"""Arrays in, arrays out: NumPy, torch, frames and sparse at the door of every estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
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


def tensor(values: NDArray[Any], device: torch.device) -> Tensor:
    """A tensor on ``device``, sharing memory where that is possible and safe."""
    if not values.flags.writeable or not values.flags.c_contiguous or not values.dtype.isnative:
        values = np.array(values, dtype=values.dtype.newbyteorder("="), order="C")
    out = torch.from_numpy(values)
    return out if device.type == "cpu" else out.to(device)
