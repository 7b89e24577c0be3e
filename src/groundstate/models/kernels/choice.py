"""Kernels by name, as scikit-learn's estimators call them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.math.kernels import (
    RBF,
    Function,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)


def chosen_kernel(
    kernel: Any,
    X: Tensor,
    y: Tensor | None,
    weight: Any,
    gamma: Any = "scale",
    degree: int = 3,
    coef0: float = 0.0,
) -> Kernel:
    """A kernel object from a name, a kernel or a function of two arrays."""
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Function(kernel)
    if kernel == "linear":
        return Linear()
    if kernel == "precomputed":
        return Precomputed()
    rate = gamma_of(gamma, X, y, weight)
    if kernel == "poly":
        return Polynomial(degree, coef0, rate)
    return Sigmoid(rate, coef0) if kernel == "sigmoid" else RBF(gamma=rate)


def gamma_of(gamma: Any, X: Tensor, y: Tensor | None, weight: Any) -> float:
    """The number behind "scale" (1/(d · Var X), over the weighted rows) and "auto" (1/d)."""
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        return float(gamma)
    w = None if weight is None else torch.as_tensor(weight)
    index, v = canonical_rows(X, y, w)  # the same sum for a weighted and a repeated table
    x = X.cpu().numpy().astype(np.float64)[index]
    total = v.sum() * x.shape[1]
    variance = float((v @ np.square(x - (v @ x).sum() / total)).sum() / total)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
