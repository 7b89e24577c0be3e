r"""What a kernel is: :math:`k(x, z) = \langle\varphi(x), \varphi(z)\rangle`, with its parameters.

A kernel is a value: frozen, comparable, storable. Its positive parameters are learned on a log
scale, ``theta``; a parameter whose bounds are ``"fixed"`` is left out of ``theta``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.kernels.geometry import Geometry

Bounds = tuple[float, float] | Literal["fixed"]
Scale = float | tuple[float, ...]
Pullback = Callable[[Tensor], Tensor]  # from slopes in K, ``(n, m)``, to those in theta
WIDE: Bounds = (1e-5, 1e5)


@dataclass(frozen=True)
class Kernel:
    r"""Base of kernels; leaves write ``_of`` and name their learnable parameters.

    Attributes
    ----------
    theta : (m,) array
        Logarithms of the free parameters, in alphabetical order within a leaf, left before right.
    bounds : (m, 2) array
        Logarithms of the bounds of the free parameters.
    """

    _learnable: ClassVar[tuple[str, ...]] = ()  # alphabetical; each has a field name + "_bounds"
    _stationary: ClassVar[bool] = False

    def is_stationary(self) -> bool:
        r"""Whether :math:`k(x, z)` depends on :math:`x - z` alone."""
        return self._stationary

    # --- values --------------------------------------------------------------------------

    def __call__(self, X: Any, Z: Any = None, eval_gradient: bool = False) -> Any:
        r"""The matrix :math:`k(x_i, z_j)`, ``(n, m)``; with ``Z=None`` the Gram matrix of X.

        With ``eval_gradient`` also its derivatives in ``theta``, ``(n, n, len(theta))``. NumPy
        in, NumPy out; torch in, torch out (differentiable in X and Z).
        """
        x, was_array = rows(X)
        z = None if Z is None else rows(Z)[0].to(x)
        if z is not None and z.shape[1] != x.shape[1]:
            raise ShapeError(
                f"a kernel needs rows of one width, got X {tuple(x.shape)} and Z {tuple(z.shape)}"
            )
        if not eval_gradient:
            K = self.of(Geometry(x, z))
            return K.detach().numpy() if was_array else K
        if z is not None:
            raise ValueError("the gradient is of the Gram matrix of X alone; leave Z out")
        K, dK = self._jacobian(x)
        return (K.detach().numpy(), dK.numpy()) if was_array else (K, dK)

    def _jacobian(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Reverse mode twice: vᵀ∂K is linear in v, and its slope in v is ∂K."""
        n = len(x)
        at = torch.as_tensor(self.theta, dtype=x.dtype, device=x.device).requires_grad_()
        with torch.enable_grad():
            K = self.of(Geometry(x.detach()), at)
            if not len(at):
                return K, x.new_zeros(n, n, 0)
            v = torch.zeros_like(K, requires_grad=True)
            (g,) = torch.autograd.grad(K, at, v, create_graph=True)
            pages = [torch.autograd.grad(gj, v, retain_graph=True)[0] for gj in g]
        return K.detach(), torch.stack(pages, -1)

    def of(self, at: Geometry, theta: Tensor | None = None) -> Tensor:
        """The matrix over a geometry, differentiable in ``theta`` where it is given."""
        return self._of(at, self._values(theta, at.x))

    def pulled(self, at: Geometry, theta: Tensor) -> tuple[Tensor, Pullback]:
        r"""The matrix, and :math:`W \mapsto \sum_{ij} W_{ij}\,\partial_\theta K_{ij}`, ``(len(theta),)``.

        Here by differentiation; kernels whose derivative is one product write it out.
        """
        leaf = theta.detach().requires_grad_()
        with torch.enable_grad():
            K = self.of(at, leaf)
        if not len(leaf):
            return K.detach(), lambda W: torch.zeros_like(theta)
        return K.detach(), lambda W: torch.autograd.grad(K, leaf, W)[0]

    def _of(self, at: Geometry, p: dict[str, Any]) -> Tensor:
        raise TypeError(f"{type(self).__name__} must define _of(geometry, parameters)")

    def diag(self, X: Any) -> Any:
        """The values :math:`k(x_i, x_i)`, ``(n,)``, without the matrix."""
        x, was_array = rows(X)
        d = self.diagonal(x)
        return d.detach().numpy() if was_array else d

    def diagonal(self, x: Tensor, theta: Tensor | None = None, *, noise: bool = True) -> Tensor:
        """``diag`` with ``theta``; without noise it is the covariance of two draws at one x."""
        at = Geometry(x[:, None], None if noise else x[:, None])
        return self.of(at, theta).reshape(len(x))

    # --- parameters ----------------------------------------------------------------------

    def _free(self) -> list[tuple[str, int]]:
        """Names and sizes of the free parameters."""
        found = []
        for name in self._learnable:
            if getattr(self, f"{name}_bounds") != "fixed":
                value = getattr(self, name)
                found.append((name, len(value) if isinstance(value, tuple) else 1))
        return found

    @property
    def n_dims(self) -> int:
        """Number of free parameters."""
        return sum(size for _, size in self._free())

    @property
    def theta(self) -> NDArray[np.float64]:
        parts = [np.atleast_1d(getattr(self, name)) for name, _ in self._free()]
        return np.log(np.concatenate(parts)) if parts else np.zeros(0)

    @property
    def bounds(self) -> NDArray[np.float64]:
        parts = [[getattr(self, f"{n}_bounds")] * size for n, size in self._free()]
        return np.log(np.array([b for part in parts for b in part], float)).reshape(-1, 2)

    def clone_with_theta(self, theta: Any) -> Self:
        """The same kernel with other free parameters."""
        values = np.exp(np.asarray(theta, float).reshape(-1))
        self._check_size(len(values))
        changes: dict[str, Any] = {}
        at = 0
        for name, size in self._free():
            vector = isinstance(getattr(self, name), tuple)
            piece = values[at : at + size].tolist()
            changes[name] = tuple(piece) if vector else piece[0]
            at += size
        return replace(self, **changes)

    def _check_size(self, given: int) -> None:
        if given != self.n_dims:
            raise ShapeError(f"{self!r} has {self.n_dims} free parameters, got {given}")

    def _values(self, theta: Tensor | None, like: Tensor) -> dict[str, Any]:
        """Parameters by name: floats, or tensors where they are vectors or come from theta."""
        out: dict[str, Any] = {}
        for name in self._learnable:
            value = getattr(self, name)
            out[name] = like.new_tensor(value) if isinstance(value, tuple) else value
        if theta is None:
            return out
        at = 0
        for name, size in self._free():
            piece = theta[at : at + size].exp()
            out[name] = piece if isinstance(getattr(self, name), tuple) else piece[0]
            at += size
        return out

    # --- algebra -------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        from groundstate.math.kernels.algebra import Sum, as_kernel

        return Sum(self, as_kernel(other))

    def __radd__(self, other: Any) -> Kernel:
        from groundstate.math.kernels.algebra import Sum, as_kernel

        return Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        from groundstate.math.kernels.algebra import Product, as_kernel

        return Product(self, as_kernel(other))

    def __rmul__(self, other: Any) -> Kernel:
        from groundstate.math.kernels.algebra import Product, as_kernel

        return Product(as_kernel(other), self)

    def __pow__(self, exponent: float) -> Kernel:
        from groundstate.math.kernels.algebra import Power

        return Power(self, exponent)

    def __repr__(self) -> str:
        shown = [f for f in fields(self) if f.init and not f.name.endswith("_bounds")]
        inner = ", ".join(f"{f.name}={_short(getattr(self, f.name))}" for f in shown)
        return f"{type(self).__name__}({inner})"


def rows(X: Any) -> tuple[Tensor, bool]:
    """Rows as a floating matrix, and whether they came as something else than torch."""
    was_array = not isinstance(X, Tensor)
    x = torch.as_tensor(np.ascontiguousarray(np.asarray(X)) if was_array else X)
    if not x.is_floating_point():
        x = x.double()
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2:
        raise ShapeError(f"a kernel needs rows (n, d), got shape {tuple(x.shape)}")
    return x, was_array


def positive(value: Any, what: str) -> Scale:
    """A positive number, or a tuple of them for one per feature."""
    if type(value) is float and 0.0 < value < math.inf:  # the usual case, which small fits feel
        return value
    values = [float(v) for v in np.atleast_1d(np.asarray(value, dtype=float))]
    if not values or not all(v > 0 and math.isfinite(v) for v in values):
        raise ValueError(f"{what} must be positive and finite, got {value!r}")
    return values[0] if np.ndim(value) == 0 else tuple(values)


def limits(bounds: Any, what: str) -> Bounds:
    """``"fixed"`` or an ordered pair of positive numbers."""
    if bounds is WIDE:
        return WIDE
    if isinstance(bounds, str):
        if bounds != "fixed":
            raise ValueError(f"{what} must be 'fixed' or a pair (low, high), got {bounds!r}")
        return "fixed"
    low, high = (float(b) for b in np.asarray(bounds, float).reshape(-1)[:2])
    if not 0 < low <= high:
        raise ValueError(f"{what} must be 'fixed' or a pair 0 < low <= high, got {bounds!r}")
    return (low, high)


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{v:.3g}" for v in value) + "]"
    return f"{value:.3g}" if isinstance(value, float) else repr(value)
