r"""The dot test: whether what is called the adjoint is the adjoint."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.math.arrays import as_tensor
from groundstate.math.linalg.operator import LinearOperator


def dot_test(
    A: Any,
    x: Any = None,
    *,
    n_trials: int = 5,
    rtol: float = 1e-10,
    random_state: RandomState = 0,
) -> float:
    r"""Check :math:`\langle Af, g\rangle = \langle f, A^*g\rangle` on random f and g.

    For a differentiable function with the Jacobian J at x it checks
    :math:`v^\top(Ju) = (J^\top v)^\top u`: derivatives by forward against reverse mode.

    Parameters
    ----------
    A : a ``LinearOperator`` or a matrix; or a function of a tensor, written in torch
    x : for a function: the point
    n_trials : pairs f, g
    rtol : largest gap, relative to :math:`\|Af\|\|g\|`
    random_state : of f and g

    Returns
    -------
    float : the largest relative gap

    Raises
    ------
    ValueError : where a gap exceeds ``rtol``; the message has it

    Examples
    --------
    >>> dot_test([[1.0, 2.0], [3.0, 4.0]]) < 1e-12
    True
    >>> dot_test(torch.sin, torch.ones(3).double()) < 1e-12
    True
    """
    generator = Key.of(random_state).fold("dot_test").torch()

    def draw(shape: tuple[int, ...], kind: torch.dtype) -> Tensor:
        return torch.randn(shape, dtype=kind, generator=generator).to(device)

    device = torch.device("cpu")
    if x is not None:
        if not callable(A):
            raise ValueError("x is the point of a differentiable function; A is not a function")
        point = as_tensor(x, "x")
        device = point.device
        pair, name = _jacobian(A, point)
    else:
        if callable(A) and not isinstance(A, LinearOperator | Tensor) and not hasattr(A, "shape"):
            raise ValueError("a function needs the point x at which its derivatives are compared")
        operator = LinearOperator.of(A)
        if operator.tensor is not None:
            device = operator.tensor.device
        kind = torch.complex128 if operator.is_complex else torch.float64
        first = (*operator.shape[:-2], operator.shape[-1])
        second = (*operator.shape[:-2], operator.shape[-2])
        pair = (operator._apply, operator._adjoint, first, second, kind)
        name = repr(operator)
    forward, backward, first, second, kind = pair
    worst = 0.0
    for _ in range(n_trials):
        f, g = draw(first, kind), draw(second, kind)
        Af, Ag = forward(f).detach(), backward(g).detach()
        left = torch.vdot(g.flatten(), Af.flatten().to(kind))
        right = torch.vdot(Ag.flatten().to(kind), f.flatten())
        size = max(float(Af.norm() * g.norm()), float(f.norm() * Ag.norm()), 1e-300)
        gap = float((left - right).abs()) / size
        worst = max(worst, gap)
        if not gap <= rtol:
            raise ValueError(
                f"{name} and its adjoint do not match: <Af, g> = {left.item():.6g} but "
                f"<f, A*g> = {right.item():.6g}, a relative gap of {gap:.3g} (rtol={rtol:g})"
            )
    return worst


def _jacobian(function: Callable[[Tensor], Tensor], x: Tensor) -> Any:
    x = x.detach().double()
    out = function(x)

    def forward(u: Tensor) -> Tensor:
        with warnings.catch_warnings():  # torch warns of its own code when forward mode is loaded
            warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
            made: Tensor = torch.func.jvp(function, (x,), (u,))[1]
        return made

    def backward(v: Tensor) -> Tensor:
        made: Tensor = torch.func.vjp(function, x)[1](v)[0]
        return made

    pair = (forward, backward, tuple(x.shape), tuple(out.shape), torch.float64)
    return pair, getattr(function, "__name__", repr(function))
