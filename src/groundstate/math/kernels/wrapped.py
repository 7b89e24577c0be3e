r"""Kernels that are given from outside: a matrix of values, or any function of two sets of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.geometry import Geometry


@dataclass(frozen=True, repr=False)
class Precomputed(Kernel):
    r"""Rows of x hold :math:`k(x, x_1), \dots, k(x, x_n)`; z holds the numbers of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> Precomputed()(np.array([[1.0, 0.2, 0.7]]), np.array([[2.0]])).tolist()
    [[0.7]]
    """

    def __call__(self, X: Any, Z: Any = None, eval_gradient: bool = False) -> Any:
        at = torch.as_tensor(np.asarray(Z))[:, 0].long()
        return X[:, at.numpy() if not isinstance(X, Tensor) else at]

    def of(self, at: Geometry, theta: Tensor | None = None) -> Tensor:
        return at.x[:, at.z[:, 0].long()]


@dataclass(frozen=True, repr=False)
class Function(Kernel):
    r""":math:`k(X, Z)` by a function from two arrays of rows to their matrix of values.

    Parameters
    ----------
    function : ``function(X, Z) -> (n, m)``, both NumPy arrays

    Examples
    --------
    >>> import numpy as np
    >>> Function(lambda X, Z: X @ Z.T)(np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    function: Callable[[Any, Any], Any]

    def of(self, at: Geometry, theta: Tensor | None = None) -> Tensor:
        if at.x.ndim == 3:  # pairs of single rows, for the diagonal
            both = zip(at.x, at.z, strict=True)
            return torch.stack([self.of(Geometry(a, b)) for a, b in both])
        values = np.asarray(self.function(at.x.detach().cpu().numpy(), at.z.detach().cpu().numpy()))
        if values.shape != at.shape():
            raise ShapeError(
                f"the kernel function returned shape {values.shape} for rows {tuple(at.x.shape)} "
                f"and {tuple(at.z.shape)}; it must return {at.shape()}"
            )
        return torch.as_tensor(np.ascontiguousarray(values)).to(at.x)

    def __repr__(self) -> str:
        return f"Function({getattr(self.function, '__name__', self.function)!s})"
