"""Rows that already stand on a device: checked there, never copied to the host."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

KINDS = (torch.float32, torch.float64)


def is_resident(X: Any) -> bool:
    """Whether X is a tensor of finite rows on a device other than the CPU, ready for use."""
    return (
        isinstance(X, Tensor)
        and X.device.type != "cpu"
        and X.layout == torch.strided
        and X.ndim == 2
        and X.dtype in KINDS
        and X.numel() > 0
        and X.is_contiguous()
        and bool(torch.isfinite(X.detach().sum()))
    )


def class_numbers(y: Any, rows: int) -> tuple[Tensor, Any] | None:
    """Class numbers and the sorted classes of whole numbers on a device, or None for other y."""
    if not isinstance(y, Tensor) or y.device.type == "cpu" or y.shape != (rows,):
        return None
    if y.is_floating_point() or y.is_complex():
        return None
    classes, index = torch.unique(y.detach(), return_inverse=True)
    return index, classes.cpu().numpy()


def targets(y: Any, X: Tensor) -> tuple[Tensor, bool] | None:
    """Targets ``(n, m)`` and whether they came flat; None for what needs more checks."""
    if not isinstance(y, Tensor) or y.device != X.device or y.ndim not in (1, 2):
        return None
    if len(y) != len(X) or y.is_complex():
        return None
    values = y.detach().to(X.dtype)
    if not bool(torch.isfinite(values.sum())):
        return None
    return (values[:, None] if y.ndim == 1 else values), y.ndim == 1


__all__ = ["class_numbers", "is_resident", "targets"]
