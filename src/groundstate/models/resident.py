"""Rows that stand on a device: fitted and answered there, checked without a copy to the host.

Without ``device=`` a fit follows its data. An estimator declares by ``_runs_on`` what it can do:
"any" (solver and answers run on every device), "answers" (the solver needs the CPU, θ then goes to
where the data is) or "cpu". What a device cannot do yet is reported once for each estimator.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.device import resolve_device
from groundstate.compute.rows import RowContainer, home
from groundstate.errors import OnCPU

KINDS = (torch.float32, torch.float64)
CPU = torch.device("cpu")
_reported: set[str] = set()


def on_device(values: Any) -> bool:
    """Whether values are a tensor on a device other than the CPU."""
    return isinstance(values, Tensor) and values.device.type != "cpu"


def places(model: Any, X: Any) -> tuple[torch.device, torch.device]:
    """Where a model is fitted, and where its θ lives afterwards."""
    asked, runs = getattr(model, "device", None), model._runs_on
    if asked is None and isinstance(X, RowContainer):
        return home({"x": X}), home({"x": X})
    if asked is not None or not on_device(X):
        device = resolve_device(asked)
        return CPU if runs == "answers" else device, device
    if runs == "any":
        return X.device, X.device
    _report(type(model).__name__, X.device, runs)
    return CPU, X.device if runs == "answers" else CPU


def _report(name: str, device: torch.device, runs: str) -> None:
    if name in _reported:
        return
    _reported.add(name)
    kept = "" if runs == "answers" else " and keeps what it learned there"
    warnings.warn(
        f"{name} has no solver for {device.type} yet: it fits on the CPU{kept}, and answers on "
        f"{device}; pass device='cpu' if that is meant",
        OnCPU,
        stacklevel=5,
    )


def is_resident(X: Any, allow_nan: bool = False) -> bool:
    """Whether X is a tensor of rows on a device, finite where they must be, ready for use."""
    if not on_device(X) or X.layout != torch.strided or X.ndim != 2 or X.dtype not in KINDS:
        return False
    if X.numel() == 0 or not X.is_contiguous():
        return False
    total = X.detach().nansum() if allow_nan else X.detach().sum()
    return bool(torch.isfinite(total))


def class_numbers(y: Any, rows: int) -> tuple[Tensor, Any] | None:
    """Class numbers and the sorted classes of whole numbers on a device, or None for other y."""
    if not on_device(y) or y.shape != (rows,) or y.is_floating_point() or y.is_complex():
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


def weights(weight: Any, X: Any) -> Tensor | None:
    """Weights of rows on their device, or None where the checks of the host must look at them."""
    if not isinstance(X, Tensor) or not isinstance(weight, Tensor) or weight.device != X.device:
        return None
    if weight.shape != (len(X),) or weight.is_complex():
        return None
    found = weight.detach().to(X.dtype)
    fine = torch.isfinite(found.sum()) & (found.min() >= 0) & (found.sum() > 0)
    return found if bool(fine) else None
