r"""Derivatives of functions with many outputs: Jacobians, and products with them.

A forward sweep gives one column :math:`Ju`, a reverse sweep one row :math:`v^\top J`. n inputs and
m outputs need n forward or m reverse sweeps; reverse mode keeps the forward pass, so that its memory
grows with depth.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

Mode = Literal["auto", "forward", "reverse"]
Function = Callable[[Tensor], Tensor]


def jacobian(f: Function, x: Tensor, mode: Mode = "auto") -> Tensor:
    r"""The Jacobian :math:`J_{ij} = \partial f_i/\partial x_j`, ``(*f(x).shape, *x.shape)``.

    Parameters
    ----------
    f : function of one tensor, written in torch
    x : the point
    mode : "forward", "reverse", or "auto": forward where x has fewer numbers than f(x)

    Examples
    --------
    >>> jacobian(lambda x: torch.stack([x[0] * x[1], x[0] ** 2]), torch.tensor([3.0, 2.0]))
    tensor([[2., 3.],
            [6., 0.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f"mode must be 'auto', 'forward' or 'reverse', got {mode!r}")
    if mode == "auto":
        mode = "forward" if x.numel() < _outputs(f, x) else "reverse"
    if mode == "reverse":
        J: Tensor = torch.func.jacrev(f)(x)
        return J
    with _quiet():
        J = torch.func.jacfwd(f)(x)
    return J


@contextmanager
def _quiet() -> Iterator[None]:
    """Torch warns of its own use of ``torch.jit`` when forward mode is first loaded."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch.jit.*", category=DeprecationWarning)
        yield


def _outputs(f: Function, x: Tensor) -> int:
    with torch.no_grad():
        return f(x).numel()


def jvp(f: Function, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    r"""f(x) and :math:`Ju`, one forward sweep.

    Examples
    --------
    >>> jvp(lambda x: x**2, torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0]))
    (tensor([1., 9.]), tensor([2., 6.]))
    """
    with _quiet():
        swept: Any = torch.func.jvp(f, (x,), (u,))
    return swept[0], swept[1]


def vjp(f: Function, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    r"""f(x) and :math:`J^\top v`, one reverse sweep.

    Examples
    --------
    >>> vjp(lambda x: x.sum().reshape(1), torch.tensor([1.0, 3.0]), torch.tensor([2.0]))
    (tensor([4.]), tensor([2., 2.]))
    """
    swept: Any = torch.func.vjp(f, x)
    return swept[0], swept[1](v)[0]
