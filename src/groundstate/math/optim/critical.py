r"""What a point with :math:`\nabla f = 0` is: the signs of the eigenvalues of the Hessian decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.math.optim.objective import Function, Objective

Kind = Literal["minimum", "maximum", "saddle", "inconclusive"]


@dataclass(frozen=True)
class CriticalPoint:
    """What a stationary point is.

    Attributes
    ----------
    kind : "minimum", "maximum", "saddle" or "inconclusive"
    eigenvalues : of the Hessian, ascending, ``(n,)``
    escape : unit vector along which f falls, ``(n,)``; None where the Hessian shows none
    hessian : ``(n, n)``
    """

    kind: Kind
    eigenvalues: NDArray[np.float64]
    escape: NDArray[np.float64] | None
    hessian: NDArray[np.float64]


def classify_critical_point(
    f: Any,
    x: Any = None,
    *,
    grad: Function | None = None,
    hess: Function | None = None,
    tol: float = 1e-8,
) -> CriticalPoint:
    r"""Minimum, maximum or saddle, by the eigenvalues :math:`\lambda` of the Hessian.

    All above ``tol``: minimum. All below ``-tol``: maximum. Some above and some below: saddle.
    Otherwise the second order does not decide, as for :math:`x^3`, :math:`x^4` and the valley
    :math:`x^2 + 0y^2`. ``tol`` is relative to the largest :math:`|\lambda|` where that exceeds 1.

    Parameters
    ----------
    f : a function, together with the point ``x``; or a Hessian ``(n, n)``
    x : the point; :math:`\nabla f(x)` must be zero, to :math:`\sqrt{\text{tol}}`
    grad, hess : gradient and Hessian of f; None differentiates
    tol : what counts as zero

    Examples
    --------
    >>> found = classify_critical_point(lambda x: x[0] ** 2 - x[1] ** 2, [0.0, 0.0])
    >>> found.kind, found.eigenvalues.tolist(), abs(found.escape).tolist()
    ('saddle', [-2.0, 2.0], [0.0, 1.0])
    """
    if callable(f) and not isinstance(f, Tensor):
        if x is None:
            raise ValueError("a function needs the point x as well; or pass a Hessian")
        objective = Objective(f, x, grad, hess)
        norm = float(objective.gradient(objective.start).norm())
        if not norm <= tol**0.5:
            raise ValueError(
                f"x is not a critical point: the norm of the gradient is {norm:.6g}; minimise first"
            )
        H = objective.hessian(objective.start)
    else:
        H = torch.as_tensor(f).double()
        if H.ndim != 2 or H.shape[0] != H.shape[1]:
            raise ValueError(f"a Hessian is a square matrix, got shape {tuple(H.shape)}")
        if not torch.allclose(H, H.T, rtol=1e-8, atol=1e-12):
            raise ValueError("a Hessian is symmetric, but this matrix is not")
    values, vectors = torch.linalg.eigh(H.cpu().double())
    zero = tol * max(1.0, float(values.abs().max()))
    up, down = bool((values > zero).any()), bool((values < -zero).any())
    kind: Kind = "inconclusive"
    if bool((values > zero).all()):
        kind = "minimum"
    elif bool((values < -zero).all()):
        kind = "maximum"
    elif up and down:
        kind = "saddle"
    escape = vectors[:, 0].numpy() if down else None
    return CriticalPoint(kind, values.numpy(), escape, H.cpu().numpy())


@dataclass(frozen=True)
class Slices:
    r"""A function along two lines through a point, :math:`U(t) = f(x + tu)`, :math:`V(t) = f(x + tv)`.

    Attributes
    ----------
    t : ``(n,)``
    U, V : values along the lines, ``(n,)``
    curvatures : :math:`U''(0)` and :math:`V''(0)` by central differences; at any x they are
        :math:`u^\top Hu` and :math:`v^\top Hv`. At a critical point, one positive and one negative
        prove a saddle.
    """

    t: NDArray[np.float64]
    U: NDArray[np.float64]
    V: NDArray[np.float64]
    curvatures: tuple[float, float]


def slices(
    f: Function, x: Any, u: Any, v: Any, *, radius: float = 1.0, n: int = 101, h: float = 1e-3
) -> Slices:
    r"""f along u and along v through x, with the curvatures there.

    Parameters
    ----------
    f : function of a point, torch or NumPy
    x : the point
    u, v : directions, as long as x
    radius, n : t goes from −radius to radius in n values
    h : distance of the differences :math:`(f(x + hu) - 2f(x) + f(x - hu))/h^2`

    Examples
    --------
    >>> found = slices(lambda x: x[0] ** 2 - 3 * x[1] ** 2, [0.0, 0.0], [1.0, 0.0], [0.0, 1.0])
    >>> [round(c, 6) for c in found.curvatures]
    [2.0, -6.0]
    """
    if not (radius > 0 and n >= 2 and h > 0):
        raise ValueError(f"need radius > 0, n >= 2 and h > 0, got {radius=}, {n=}, {h=}")
    objective = Objective(f, x)
    at = objective.start
    t = np.linspace(-radius, radius, n)
    lines, curvatures = [], []
    for name, given in (("u", u), ("v", v)):
        d = torch.as_tensor(given).to(at).reshape(-1)
        if d.shape != at.shape or not float(d.norm()) > 0:
            raise ValueError(f"{name} must be a nonzero vector of {at.numel()} numbers")
        lines.append(np.array([objective.value(at + float(s) * d) for s in t]))
        ends = objective.value(at + h * d) + objective.value(at - h * d)
        curvatures.append((ends - 2 * objective.value(at)) / h**2)
    return Slices(t, lines[0], lines[1], (curvatures[0], curvatures[1]))
