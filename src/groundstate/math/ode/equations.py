r"""Linear systems in closed form, and kinds of partial differential equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import square


@takes_arrays("A", "c", "t")
def linear(A: Any, c: Any, t: Any) -> Any:
    r"""The solution :math:`y(t) = e^{At}c` of :math:`\dot y = Ay`, :math:`y(0) = c`.

    Parameters
    ----------
    A : ``(..., n, n)``
    c : ``(..., n)``
    t : times ``(m,)``, or one

    Returns
    -------
    ``(m, ..., n)``, or ``(..., n)`` for one time

    Examples
    --------
    >>> linear([[0.0, -1.0], [1.0, 0.0]], [1.0, 0.0], torch.pi / 2).round(12).tolist()
    [0.0, 1.0]
    """
    if c.ndim < 1 or c.shape[-1] != square(A).shape[-1]:
        raise ShapeError(f"c must have {A.shape[-1]} entries like A, got shape {tuple(c.shape)}")
    if t.ndim > 1:
        raise ShapeError(f"t must be times (m,), got shape {tuple(t.shape)}")
    dtype = torch.promote_types(A.dtype, c.dtype)
    scale = t.to(A.dtype).reshape(*t.shape, *[1] * A.ndim)
    flow = torch.linalg.matrix_exp(scale * A).to(dtype)
    return (flow @ c.to(dtype)[..., None])[..., 0]


@takes_arrays("A", "B", "C")
def classify_pde(A: Any, B: Any, C: Any) -> Any:
    r"""The kind of :math:`Au_{xx} + 2Bu_{xy} + Cu_{yy} + \dots = 0` by :math:`B^2 - AC`.

    Below zero it is elliptic (Laplace), at zero parabolic (heat), above zero hyperbolic (wave). An
    ordinary differential equation has derivatives in one variable only, a partial one in several.

    Parameters
    ----------
    A, B, C : coefficients of the second derivatives, numbers or arrays of one shape

    Returns
    -------
    "elliptic", "parabolic" or "hyperbolic"; an array of them for arrays

    Examples
    --------
    >>> classify_pde(1, 0, 1), classify_pde(1, 0, 0), classify_pde(1, 0, -1)
    ('elliptic', 'parabolic', 'hyperbolic')
    """
    A, B, C = torch.broadcast_tensors(A, B, C)
    if bool(((A == 0) & (B == 0) & (C == 0)).any()):
        raise ValueError("A, B and C are all zero: the equation is not of second order")
    kind = (B * B - A * C).sign().long() + 1
    names = np.array(["elliptic", "parabolic", "hyperbolic"])[kind.cpu().numpy()]
    return str(names) if kind.ndim == 0 else names
