r"""States of any structure, and linear equations of any order as systems of the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.torch import tree_flatten, tree_unflatten
from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor
from groundstate.math.ode.integrate import integrate


def odeint(
    f: Callable[[Any, Any], Any],
    y0: Any,
    t: Any,
    method: str = "dopri5",
    *,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    **settings: Any,
) -> Any:
    r"""Follow :math:`\dot y = f(t, y)` through the times t, from a state of any structure.

    As ``integrate``, with dopri5 by default; the state may also be a dict, list or tuple of tensors (or
    of those), which f gets and returns in the same structure.

    Parameters
    ----------
    f : slope of a time and a state
    y0 : state at ``t[0]``: an array, a tensor, or a dict, list or tuple of tensors
    t : times ``(m,)``
    method, rtol, atol, settings : as in ``integrate``

    Returns
    -------
    The structure of y0, every tensor with a leading axis of the m times

    Examples
    --------
    >>> y0 = {"q": torch.tensor([1.0]), "p": torch.tensor([0.0])}
    >>> t = torch.tensor([0.0, torch.pi])
    >>> y = odeint(lambda t, y: {"q": y["p"], "p": -y["q"]}, y0, t)
    >>> y["q"][-1].round(decimals=4).tolist()
    [-1.0]
    """
    if not isinstance(y0, dict | list | tuple) or _is_array(y0):
        return integrate(f, y0, t, method, rtol=rtol, atol=atol, **settings)
    leaves, structure = tree_flatten(y0)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ShapeError("a state in parts is a dict, list or tuple of at least one tensor")
    shapes, sizes = [leaf.shape for leaf in leaves], [leaf.numel() for leaf in leaves]

    def parts(flat: Tensor) -> Any:
        lead = flat.shape[:-1]
        pieces = flat.split(sizes, -1)
        return tree_unflatten([p.reshape(*lead, *s) for p, s in zip(pieces, shapes)], structure)

    def slope(time: Tensor, flat: Tensor) -> Tensor:
        found, same = tree_flatten(f(time, parts(flat)))
        if same != structure or [leaf.shape for leaf in found] != shapes:
            raise ShapeError("f must return the structure and shapes of y0")
        return torch.cat([leaf.reshape(-1) for leaf in found])

    start = torch.cat([leaf.reshape(-1) for leaf in leaves])
    times = as_tensor(t, "t")
    states: Tensor = integrate(
        slope, start, times, method, rtol=rtol, atol=atol, rows=False, **settings
    )
    return parts(states)


def _is_array(y0: Any) -> bool:
    """Whether a list is one of numbers."""
    if isinstance(y0, dict):
        return False
    leaves = tree_flatten(list(y0))[0]
    return bool(leaves) and all(isinstance(v, int | float | complex | np.generic) for v in leaves)


def linear_ode(coefficients: Sequence[float], b: float = 0.0) -> tuple[Any, Any]:
    r"""The system :math:`\dot z = Az + c` of :math:`a_ny^{(n)} + \dots + a_1y' + a_0y + b = 0`.

    Its state is :math:`z = (y, y', \dots, y^{(n-1)})`; f(t, z) = z Aᵀ + c goes to ``odeint``.

    Parameters
    ----------
    coefficients : :math:`a_0, a_1, \dots, a_n`, numbers; the last is not zero
    b : constant term

    Returns
    -------
    A ``(n, n)`` and c ``(n,)``

    Examples
    --------
    >>> A, c = linear_ode([1.0, 0.0, 1.0])  # y'' + y = 0
    >>> A.tolist(), c.tolist()
    ([[0.0, 1.0], [-1.0, 0.0]], [0.0, 0.0])
    >>> y = odeint(lambda t, z: z @ A.T + c, [1.0, 0.0], [0.0, np.pi / 2])
    >>> np.allclose(y[-1], [0.0, -1.0], atol=1e-5)
    True
    """
    a = np.asarray(coefficients, dtype=np.float64)
    if a.ndim != 1 or len(a) < 2 or not np.isfinite(a).all() or a[-1] == 0:
        raise ValueError(
            "coefficients are numbers a_0, ..., a_n with n >= 1 and a_n != 0, got "
            f"{np.array2string(a, threshold=6)}"
        )
    n = len(a) - 1
    A = np.eye(n, k=1)
    A[-1] = -a[:-1] / a[-1]
    c = np.zeros(n)
    c[-1] = -float(b) / a[-1]
    return A + 0.0, c + 0.0
