"""The kernels that scikit-learn's kernel ridge knows by name, and functions of two rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from sklearn.metrics.pairwise import pairwise_kernels
from torch import Tensor

from groundstate.math.kernels import (
    RBF,
    Geometry,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)


@dataclass(frozen=True, repr=False)
class Pairwise(Kernel):
    """A kernel of ``sklearn.metrics.pairwise`` by name, or a function of two rows.

    Parameters
    ----------
    metric : name or ``function(row, row) -> number``
    params : arguments of it, as pairs
    """

    metric: Any
    params: tuple[tuple[str, Any], ...] = ()

    def of(self, at: Geometry, theta: Tensor | None = None) -> Tensor:
        x, z = at.x.detach().cpu().numpy(), at.z.detach().cpu().numpy()
        named = isinstance(self.metric, str)
        K = pairwise_kernels(x, z, metric=self.metric, filter_params=named, **dict(self.params))
        return torch.as_tensor(K).to(at.x)


def ridge_kernel(
    kernel: Any, d: int, gamma: float | None, degree: float, coef0: float, params: Any
) -> Kernel:
    """The kernel behind the names of ``KernelRidge``; functions are of two rows."""
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        return Pairwise(kernel, tuple((params or {}).items()))
    rate = 1.0 / d if gamma is None else float(gamma)
    if kernel == "linear":
        return Linear()
    if kernel == "precomputed":
        return Precomputed()
    if kernel == "rbf" and rate > 0:
        return RBF(gamma=rate)
    if kernel in ("poly", "polynomial") and rate > 0 and float(degree).is_integer():
        return Polynomial(int(degree), coef0, rate)
    if kernel == "sigmoid":
        return Sigmoid(rate, coef0)
    named = {"gamma": gamma, "degree": degree, "coef0": coef0}
    return Pairwise(kernel, tuple((name, v) for name, v in named.items() if v is not None))
