"""The kernel that a smoother begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.math.kernels import RBF, Function, Kernel


def start_kernel(kernel: Any, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Kernel:
    """The kernel or function that was given, or an RBF as wide as the rows are spread."""
    if kernel is not None:
        return kernel if isinstance(kernel, Kernel) else Function(kernel)
    # the same sum for a weighted and a repeated table
    index, w = distinct_rows(row_hash(X, y), weight)
    x = X.detach().cpu().numpy().astype(np.float64)[index]
    total = float(w.sum()) * x.shape[1]
    variance = float((w @ np.square(x - (w @ x).sum() / total)).sum()) / total
    width = (0.5 * X.shape[1] * variance) ** 0.5 if variance > 0 else 0.5**0.5
    return RBF(width, (1e-3 * width, 1e3 * width))
