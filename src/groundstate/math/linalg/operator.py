r"""Matrices as operators: products with A and its adjoint are all that is known of it.

The finite and the infinite side by side: a vector is a function on the indices, a matrix an operator,
a covariance matrix a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor, to_numpy

Apply = Callable[[Any], Any]


class LinearOperator:
    r"""A linear map :math:`x \mapsto Ax` with its adjoint :math:`A^* = \bar A^\top`.

    ``A @ x`` multiplies a vector ``(n,)`` or columns ``(..., n, r)``; ``A @ B``, ``A + B``, ``2 * A``,
    ``-A``, ``A.H`` (adjoint) and ``A.T`` (transpose) are operators again. Arrays give arrays, tensors
    tensors with a gradient.

    Parameters
    ----------
    shape : ``(m, n)``
    matvec : Ax for vectors ``(..., n)``
    rmatvec : :math:`A^*y` for vectors ``(..., m)``; None differentiates ``matvec``, which must then be
        written in torch
    is_complex : whether A has complex entries

    Examples
    --------
    >>> shift = LinearOperator((3, 3), lambda x: x.roll(1, -1), lambda y: y.roll(-1, -1))
    >>> (shift @ [1.0, 2.0, 3.0]).tolist(), (shift.H @ shift).to_dense().tolist()
    ([3.0, 1.0, 2.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """

    shape: tuple[int, ...]
    is_complex: bool
    tensor: Tensor | None = None  # the matrix, where there is one
    numpy: bool = True  # whether what it is made of came as arrays
    parts: tuple[LinearOperator, ...] = ()  # operators that it is made of

    def __init__(
        self,
        shape: tuple[int, int],
        matvec: Apply,
        rmatvec: Apply | None = None,
        *,
        is_complex: bool = False,
    ) -> None:
        if len(shape) != 2 or min(shape) < 1:
            raise ShapeError(f"shape must be (m, n) with m, n >= 1, got {shape}")
        self.shape, self.is_complex = tuple(shape), is_complex
        self._forward, self._backward = matvec, rmatvec

    @staticmethod
    def of(A: Any) -> LinearOperator:
        """An operator from a matrix ``(..., m, n)``, scipy's sparse matrices and operators, or itself."""
        if isinstance(A, LinearOperator):
            return A
        if hasattr(A, "rmatvec") or (hasattr(A, "tocsr") and hasattr(A, "nnz")):
            return _Foreign(A)
        made = _Dense(as_tensor(A, "A"))
        made.numpy = not isinstance(A, Tensor)
        return made

    # what a kind of operator defines: products with tensors, vectors on the last axis

    def _apply(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self._forward(x))

    def _adjoint(self, y: Tensor) -> Tensor:
        if self._backward is not None:
            return torch.as_tensor(self._backward(y))
        start = torch.zeros(*y.shape[:-1], self.shape[-1], dtype=y.dtype, device=y.device)
        return torch.func.vjp(self._apply, start)[1](y)[0]

    @property
    def like(self) -> Tensor | None:
        """A tensor where the operator lives, which arrays follow."""
        if self.tensor is not None:
            return self.tensor
        return next((part.like for part in self.parts if part.like is not None), None)

    def _give(self, value: Tensor) -> Any:
        return to_numpy(value) if self.numpy else value

    # what everybody uses

    def matvec(self, x: Any) -> Any:
        """Ax for vectors ``(..., n)``."""
        return self._on(x, self.shape[-1], self._apply, "x")

    def rmatvec(self, y: Any) -> Any:
        r""":math:`A^*y` for vectors ``(..., m)``."""
        return self._on(y, self.shape[-2], self._adjoint, "y")

    def columns(self, X: Tensor) -> Tensor:
        """AX for columns ``(..., n, r)`` of a tensor."""
        if self.tensor is not None:
            return self.tensor @ X
        return self._apply(X.movedim(-1, 0)).movedim(0, -1)

    def _on(self, x: Any, size: int, apply: Callable[[Tensor], Tensor], name: str) -> Any:
        given = as_tensor(x, name, self.like)
        if given.ndim < 1 or given.shape[-1] != size:
            raise ShapeError(
                f"{name} must have {size} entries for an operator of shape {self.shape}, "
                f"got shape {tuple(given.shape)}"
            )
        out = apply(given)
        return out if isinstance(x, Tensor) else to_numpy(out)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, LinearOperator):
            return _Product(self, other)
        given = as_tensor(other, "x", self.like)
        if given.ndim == 1:
            return self.matvec(other)
        if given.ndim == 0 or given.shape[-2] != self.shape[-1]:
            raise ShapeError(f"{self!r} cannot multiply an array of shape {tuple(given.shape)}")
        out = self.columns(given)
        return out if isinstance(other, Tensor) else to_numpy(out)

    __array_priority__ = 1000  # scalars of NumPy leave the product to us

    def __mul__(self, scale: Any) -> LinearOperator:
        return _Scaled(self, scale)

    __rmul__ = __mul__

    def __neg__(self) -> LinearOperator:
        return _Scaled(self, -1.0)

    def __add__(self, other: LinearOperator) -> LinearOperator:
        return _Sum(self, other)

    def __sub__(self, other: LinearOperator) -> LinearOperator:
        return _Sum(self, -other)

    @property
    def H(self) -> LinearOperator:
        r"""The adjoint :math:`A^*`, with :math:`\langle Af, g\rangle = \langle f, A^*g\rangle`."""
        return _Adjoint(self)

    @property
    def T(self) -> LinearOperator:
        """The transpose; the adjoint, for real operators."""
        return _Transpose(self) if self.is_complex else self.H

    def to_dense(self, dtype: torch.dtype = torch.float64) -> Any:
        """The matrix: column j is the image of the j-th unit vector. NumPy, unless A came as a tensor."""
        if self.tensor is not None:
            return self._give(self.tensor)
        kind = torch.complex128 if self.is_complex and not dtype.is_complex else dtype
        device = None if self.like is None else self.like.device
        unit = torch.eye(self.shape[-1], dtype=kind, device=device)
        return self._give(self._apply(unit).movedim(0, -1))

    def solve(self, b: Any, *, tol: float = 1e-12, max_iter: int | None = None) -> Any:
        r""":math:`A^{-1}b` by conjugate gradients, for a symmetric positive definite A."""
        from groundstate.math.linalg.solve import solve

        return solve(self, b, "cg", tol=tol, max_iter=max_iter)[0]

    def trace(self, probes: int | None = None, random_state: RandomState = None) -> Any:
        r"""The sum of the diagonal, or with ``probes`` Hutchinson's estimate
        :math:`\overline{z^\top Az}` over random signs z, which needs products alone.

        Examples
        --------
        >>> A = LinearOperator.of([[3.0, 1.0], [1.0, 2.0]])
        >>> A.trace(), (A @ A).trace(), abs(A.trace(probes=1000, random_state=0) - 5) < 0.2
        (5.0, 15.0, True)
        """
        if self.shape[-1] != self.shape[-2]:
            raise ShapeError(f"a trace needs a square operator, got shape {self.shape}")
        if probes is None:
            dense = torch.as_tensor(self.to_dense())
            return self._give(dense.diagonal(dim1=-2, dim2=-1).sum(-1))
        z = self.signs(probes, random_state)
        return self._give((z * self.columns(z)).sum(-2).mean(-1))

    def signs(self, probes: int, random_state: RandomState) -> Tensor:
        """Columns of random signs, ``(n, probes)``."""
        rng = Key.of(random_state).fold("signs").numpy()
        signs = torch.from_numpy(rng.integers(0, 2, (self.shape[-1], probes)) * 2.0 - 1.0)
        return signs if self.like is None else signs.to(self.like)

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}{self.shape}"


class _Dense(LinearOperator):
    def __init__(self, A: Tensor) -> None:
        if A.ndim < 2:
            raise ShapeError(f"A must be a matrix (..., m, n), got shape {tuple(A.shape)}")
        self.tensor, self.shape, self.is_complex = A, tuple(A.shape), A.is_complex()

    def _apply(self, x: Tensor) -> Tensor:
        assert self.tensor is not None
        return (self.tensor.to(_wide(self.tensor, x)) @ x[..., None])[..., 0]

    def _adjoint(self, y: Tensor) -> Tensor:
        assert self.tensor is not None
        return (self.tensor.mH.to(_wide(self.tensor, y)) @ y[..., None])[..., 0]

    @property
    def H(self) -> LinearOperator:
        assert self.tensor is not None
        made = _Dense(self.tensor.mH)
        made.numpy = self.numpy
        return made


def _wide(A: Tensor, x: Tensor) -> torch.dtype:
    return torch.promote_types(A.dtype, x.dtype)


class _Foreign(LinearOperator):
    """scipy's sparse matrices and linear operators, without a gradient."""

    def __init__(self, A: Any) -> None:
        self.foreign, self.shape = A, tuple(A.shape)
        self.is_complex = getattr(A.dtype, "kind", "f") == "c"

    def _apply(self, x: Tensor) -> Tensor:
        return self._by(self.foreign, x)

    def _adjoint(self, y: Tensor) -> Tensor:
        adjoint = self.foreign.conj().T if hasattr(self.foreign, "tocsr") else self.foreign.H
        return self._by(adjoint, y)

    def _by(self, A: Any, x: Tensor) -> Tensor:
        flat = x.detach().reshape(-1, x.shape[-1]).cpu().numpy()
        out = torch.as_tensor((A @ flat.T).T.copy(), device=x.device)
        return out.reshape(*x.shape[:-1], out.shape[-1])


class _Adjoint(LinearOperator):
    def __init__(self, A: LinearOperator) -> None:
        self.A, self.parts, self.is_complex = A, (A,), A.is_complex
        self.shape = (*A.shape[:-2], A.shape[-1], A.shape[-2])

    def _apply(self, x: Tensor) -> Tensor:
        return self.A._adjoint(x)

    def _adjoint(self, y: Tensor) -> Tensor:
        return self.A._apply(y)

    @property
    def H(self) -> LinearOperator:
        return self.A


class _Transpose(_Adjoint):
    def _apply(self, x: Tensor) -> Tensor:
        return self.A._adjoint(x.conj()).conj()

    def _adjoint(self, y: Tensor) -> Tensor:
        return self.A._apply(y.conj()).conj()

    @property
    def T(self) -> LinearOperator:
        return self.A

    @property
    def H(self) -> LinearOperator:
        return _Adjoint(self)


class _Scaled(LinearOperator):
    def __init__(self, A: LinearOperator, scale: Any) -> None:
        if not isinstance(scale, Tensor) and not isinstance(scale, int | float | complex):
            scale = as_tensor(scale, "the factor")
        if isinstance(scale, Tensor) and scale.numel() != 1:
            raise ShapeError("an operator is multiplied by a number; use @ for products")
        self.A, self.parts, self.scale, self.shape = A, (A,), scale, A.shape
        self.is_complex = A.is_complex or isinstance(scale, complex)

    def _apply(self, x: Tensor) -> Tensor:
        return self.scale * self.A._apply(x)

    def _adjoint(self, y: Tensor) -> Tensor:
        turned = self.scale.conj() if isinstance(self.scale, Tensor) else self.scale.conjugate()
        return turned * self.A._adjoint(y)


class _Sum(LinearOperator):
    def __init__(self, A: LinearOperator, B: LinearOperator) -> None:
        B = LinearOperator.of(B)
        if A.shape[-2:] != B.shape[-2:]:
            raise ShapeError(f"operators of shapes {A.shape} and {B.shape} cannot be added")
        self.A, self.B, self.parts = A, B, (A, B)
        self.is_complex = A.is_complex or B.is_complex
        self.shape = max(A.shape, B.shape, key=len)

    def _apply(self, x: Tensor) -> Tensor:
        return self.A._apply(x) + self.B._apply(x)

    def _adjoint(self, y: Tensor) -> Tensor:
        return self.A._adjoint(y) + self.B._adjoint(y)


class _Product(LinearOperator):
    def __init__(self, A: LinearOperator, B: LinearOperator) -> None:
        if A.shape[-1] != B.shape[-2]:
            raise ShapeError(f"operators of shapes {A.shape} and {B.shape} cannot be composed")
        self.A, self.B, self.parts = A, B, (A, B)
        self.is_complex = A.is_complex or B.is_complex
        batch = max(A.shape[:-2], B.shape[:-2], key=len)
        self.shape = (*batch, A.shape[-2], B.shape[-1])

    def _apply(self, x: Tensor) -> Tensor:
        return self.A._apply(self.B._apply(x))

    def _adjoint(self, y: Tensor) -> Tensor:
        return self.B._adjoint(self.A._adjoint(y))

    @property
    def H(self) -> LinearOperator:
        return _Product(self.B.H, self.A.H)


class GridOperator(LinearOperator):
    """An operator between functions on grids; called with a grid it answers with a grid.

    Attributes
    ----------
    in_shape, out_shape : grids it takes and gives; ``matvec`` sees them flat
    """

    in_shape: tuple[int, ...]
    out_shape: tuple[int, ...]

    def _set(self, in_shape: tuple[int, ...], out_shape: tuple[int, ...]) -> None:
        self.in_shape, self.out_shape = in_shape, out_shape
        self.shape, self.is_complex = (prod(out_shape), prod(in_shape)), False

    def __call__(self, f: Any) -> Any:
        """The image of functions ``(..., *in_shape)``, as ``(..., *out_shape)``."""
        given = as_tensor(f, "f")
        grid = tuple(given.shape[given.ndim - len(self.in_shape) :])
        if grid != self.in_shape:
            raise ShapeError(f"f must end in {self.in_shape}, got shape {tuple(given.shape)}")
        lead = given.shape[: given.ndim - len(self.in_shape)]
        out = self._apply(given.reshape(*lead, -1)).reshape(*lead, *self.out_shape)
        return out if isinstance(f, Tensor) else to_numpy(out)
