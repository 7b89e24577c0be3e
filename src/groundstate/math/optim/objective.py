r"""A function to be minimised: value, gradient and Hessian of a torch or NumPy callable, counted.

With torch inside, derivatives come from automatic differentiation; a NumPy function brings its own
gradient. The optimisers see flat torch vectors and never ask twice at one point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import Unsupported

Function = Callable[[Any], Any]


class Space:
    """Which kind of point the caller uses: its shape, and NumPy, torch or a plain number."""

    def __init__(self, x0: Any) -> None:
        self.torch = isinstance(x0, Tensor)
        self.number = isinstance(x0, int | float)
        start = x0.detach() if isinstance(x0, Tensor) else torch.as_tensor(np.asarray(x0))
        if not start.is_floating_point():
            start = start.double()
        if not self.torch:
            start = start.double()
        if not bool(torch.isfinite(start).all()):
            raise ValueError(f"the start holds NaN or infinity: {x0}; begin at a finite point")
        self.shape = start.shape
        self.start = start.reshape(-1).clone()

    def give(self, x: Tensor) -> Any:
        """A flat vector, or a stack of them ``(m, n)``, as the caller knows points."""
        shaped = x.detach().reshape((*x.shape[:-1], *self.shape))
        if self.torch:
            return shaped
        array = shaped.cpu().numpy()
        return float(array) if self.number and array.ndim == 0 else array

    def matrix(self, values: Tensor | None) -> Any:
        """An ``(n, n)`` matrix in the caller's kind of array."""
        return values if values is None or self.torch else values.cpu().numpy()


class Objective:
    """Value, gradient and Hessian of ``f`` at flat vectors, with counts.

    Parameters
    ----------
    f : takes a point like ``x0`` and returns a number
    x0 : start; NumPy, torch or a number
    grad : gradient of f; None differentiates f, which must then be written in torch (or in plain
        arithmetic)
    hess : Hessian of f, ``(n, n)``; None differentiates

    Notes
    -----
    A NumPy start with ``grad`` means that f takes NumPy arrays; without it f is called with torch
    tensors in float64. Answers are in the kind of ``x0`` either way.
    """

    def __init__(
        self, f: Function, x0: Any, grad: Function | None = None, hess: Function | None = None
    ) -> None:
        self.f, self.grad, self.hess = f, grad, hess
        self.space = Space(x0)
        self.foreign = grad is not None and not self.space.torch
        self.nfev = self.njev = self.nhev = 0
        self._at: Tensor | None = None
        self._known: tuple[float, Tensor] = (0.0, self.space.start)

    @property
    def start(self) -> Tensor:
        return self.space.start

    def _point(self, x: Tensor) -> Any:
        return self.space.give(x) if self.foreign else x.reshape(self.space.shape)

    def value(self, x: Tensor) -> float:
        """f(x)."""
        if self._at is not None and torch.equal(self._at, x):
            return self._known[0]
        self.nfev += 1
        with torch.no_grad():
            return float(_scalar(self._call(self._point(x))))

    def gradient(self, x: Tensor) -> Tensor:
        """∇f(x), ``(n,)``."""
        return self.both(x)[1]

    def both(self, x: Tensor) -> tuple[float, Tensor]:
        """f(x) and ∇f(x); the last point is remembered."""
        if self._at is not None and torch.equal(self._at, x):
            return self._known
        self.nfev += 1
        self.njev += 1
        if self.grad is not None:
            point = self._point(x)
            value = float(_scalar(self._call(point)))
            g = torch.as_tensor(self.grad(point)).to(x).reshape(-1).detach()
            if g.shape != x.shape:
                raise ValueError(
                    f"the gradient has {g.numel()} numbers, but the point has {x.numel()}"
                )
        else:
            value, g = self._differentiate(x)
        self._at, self._known = x.clone(), (value, g)
        return self._known

    def _differentiate(self, x: Tensor) -> tuple[float, Tensor]:
        with torch.enable_grad():
            leaf = x.detach().clone().requires_grad_()
            out = _scalar(self._call(leaf.reshape(self.space.shape)))
            if not isinstance(out, Tensor):
                raise _not_torch()
            if not out.requires_grad:  # does not depend on x
                return float(out), torch.zeros_like(x)
            (g,) = torch.autograd.grad(out, leaf)
        return float(out.detach()), g.detach()

    def _call(self, point: Any) -> Any:
        try:
            return self.f(point)
        except (RuntimeError, TypeError) as error:
            if not self.foreign and "numpy" in str(error).lower():
                raise _not_torch() from error
            raise

    def hessian(self, x: Tensor) -> Tensor:
        """∇²f(x), ``(n, n)``."""
        self.nhev += 1
        n = x.numel()
        if self.hess is not None:
            return torch.as_tensor(self.hess(self._point(x))).to(x).reshape(n, n).detach()
        if self.foreign:
            raise Unsupported(
                "a NumPy function with grad= needs hess= as well, or write f in torch and leave "
                "both out"
            )
        with torch.enable_grad():
            leaf = x.detach().clone().requires_grad_()
            g = self._graph(leaf)
        if not g.requires_grad:
            return x.new_zeros(n, n)
        H = _rows(g, leaf)
        return 0.5 * (H + H.T)

    def product(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """The map :math:`d \\mapsto \\nabla^2 f(x)\\,d`, without the matrix where f is torch."""
        if self.hess is not None or self.foreign:
            H = self.hessian(x)
            return lambda d: H @ d
        with torch.enable_grad():
            leaf = x.detach().clone().requires_grad_()
            g = self._graph(leaf)

        def times(d: Tensor) -> Tensor:
            self.nhev += 1
            if not g.requires_grad:
                return torch.zeros_like(d)
            (out,) = torch.autograd.grad(
                g, leaf, d, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            return out

        return times

    def _graph(self, leaf: Tensor) -> Tensor:
        """The gradient as a function of the leaf that can be differentiated again."""
        point = leaf.reshape(self.space.shape)
        if self.grad is not None:
            return torch.as_tensor(self.grad(point)).reshape(-1)
        out = _scalar(self._call(point))
        if not isinstance(out, Tensor):
            raise _not_torch()
        if not out.requires_grad:
            return torch.zeros_like(leaf)
        (g,) = torch.autograd.grad(out, leaf, create_graph=True)
        return g


def _rows(g: Tensor, leaf: Tensor) -> Tensor:
    """The Jacobian of g, ``(n, n)``: all rows in one pass where every operation allows it."""
    eye = torch.eye(leaf.numel(), dtype=leaf.dtype, device=leaf.device)
    options: dict[str, Any] = {"retain_graph": True, "allow_unused": True}
    try:
        (J,) = torch.autograd.grad(g, leaf, eye, is_grads_batched=True, **options)
    except RuntimeError:
        each = [torch.autograd.grad(g, leaf, d, **options)[0] for d in eye]
        J = None if each[0] is None else torch.stack(each)
    return torch.zeros_like(eye) if J is None else J.detach()


def _scalar(out: Any) -> Any:
    """The number a function returned, as a 0-d tensor or a float."""
    size = out.numel() if isinstance(out, Tensor) else np.size(out)
    if size != 1:
        raise ValueError(
            f"f must return one number, got {size}; sum or average its values, or use newton_root "
            "for a system of equations"
        )
    return out.reshape(()) if isinstance(out, Tensor) else float(np.asarray(out).reshape(()))


def _not_torch() -> Unsupported:
    return Unsupported(
        "f is not written in torch, so it cannot be differentiated; pass its gradient as grad=, or "
        "use torch functions in f"
    )
