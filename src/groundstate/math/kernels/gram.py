r"""The matrix of a kernel that is never stored: products by row chunks, the rest from products."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.errors import NotConverged, ShapeError
from groundstate.math.arrays import as_tensor, to_numpy
from groundstate.math.kernels.base import Kernel, rows
from groundstate.math.kernels.covariance import TILE, TiledCovariance
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.pivots import explained_by, pivoted_cholesky
from groundstate.math.linalg.conjugate_gradients import Solved, log_quadratic
from groundstate.math.linalg.operator import LinearOperator

DENSE = 768  # rows up to which a Cholesky factor costs less than a preconditioner


class Gram(LinearOperator):
    r""":math:`K_{ij} = k(x_i, y_j)`, a covariance operator restricted to points.

    A `linalg.LinearOperator`: ``K @ v``, ``K.H``, ``K + A`` and ``2 * K`` work as for any other. A product
    :math:`Kv` computes some rows of K at a time; everything else (solutions, traces,
    log-determinants, factors of low rank) is made of products and of few columns. With ``Y=None``
    the matrix is symmetric and noise of the kernel (`White`) is on its diagonal.

    Parameters
    ----------
    kernel : covariance
    X : ``(n, d)``
    Y : ``(m, d)``, or None for X
    chunk : rows of K at once; None is as many as make 2²⁴ numbers
    rank : columns of the preconditioner behind ``solve`` and ``logdet``

    Attributes
    ----------
    shape : (n, m)

    Examples
    --------
    >>> from groundstate.math.kernels import RBF, White
    >>> X = np.linspace(0, 3, 50)[:, None]
    >>> K = Gram(RBF(1.0) + White(0.1), X, chunk=7)
    >>> dense = K.to_dense()
    >>> bool(np.abs(K @ X[:, 0] - dense @ X[:, 0]).max() < 1e-12)
    True
    >>> bool(np.abs(dense @ K.solve(X[:, 0]) - X[:, 0]).max() < 1e-6)
    True
    >>> bool(abs(K.logdet(random_state=0) - np.linalg.slogdet(dense)[1]) < 0.1)
    True
    """

    def __init__(
        self, kernel: Kernel, X: Any, Y: Any = None, chunk: int | None = None, *, rank: int = 100
    ) -> None:
        self.kernel, self.rank = kernel, rank
        self.x, self.numpy = _checked(X, "X", None)
        self.y = None if Y is None else _checked(Y, "Y", self.x)[0]
        if self.y is not None and self.y.shape[1] != self.x.shape[1]:
            raise ShapeError(
                f"X and Y need rows of one width, got {tuple(self.x.shape)} and "
                f"{tuple(self.y.shape)}"
            )
        self.shape = (len(self.x), len(self.x if self.y is None else self.y))
        self.is_complex = False
        if chunk is not None and chunk < 1:
            raise ValueError(f"chunk must be at least 1 row, got {chunk}")
        self.chunk = chunk or max(1, TILE // max(1, self.shape[1]))

    def __repr__(self) -> str:
        return f"Gram({self.kernel!r}, {self.shape[0]}×{self.shape[1]})"

    # --- products ------------------------------------------------------------------------

    def tiles(self) -> Iterator[tuple[slice, Tensor]]:
        """Slices of rows and their part of the matrix, ``(chunk, m)``, without noise."""
        other = self.x if self.y is None else self.y
        for start in range(0, self.shape[0], self.chunk):
            at = slice(start, start + self.chunk)
            yield at, self.kernel.of(Geometry(self.x[at], other))

    @cached_property
    def _noise(self) -> Tensor | None:
        """What the kernel adds to the diagonal alone, ``(n,)``."""
        if self.y is not None:
            return None
        smooth = self.kernel.diagonal(self.x, noise=False)
        return self.kernel.diagonal(self.x) - smooth

    @property
    def like(self) -> Tensor:
        return self.x

    def columns(self, X: Tensor) -> Tensor:
        """KX for columns ``(..., m, r)`` of a tensor."""
        given = X.to(self.x.dtype)
        out = torch.cat([tile @ given for _, tile in self.tiles()], -2)
        return out if self._noise is None else out + self._noise[:, None] * given

    def _apply(self, x: Tensor) -> Tensor:
        return self.columns(x[..., None])[..., 0]

    def _adjoint(self, y: Tensor) -> Tensor:
        return self.H._apply(y)

    @property
    def H(self) -> Gram:
        """The transposed matrix."""
        if self.y is None:
            return self
        twin = Gram(self.kernel, self.y, self.x, rank=self.rank)
        twin.numpy = self.numpy
        return twin

    def diag(self) -> Any:
        """The diagonal, ``(min(n, m),)``."""
        if self.y is None:
            return self._give(self.kernel.diagonal(self.x))
        k = min(self.shape)
        at = Geometry(self.x[:k, None], self.y[:k, None])
        return self._give(self.kernel.of(at).reshape(k))

    def to_dense(self, dtype: torch.dtype | None = None) -> Any:
        """The whole matrix, ``(n, m)``; in the precision of the rows unless ``dtype`` says another."""
        K = self.kernel.of(Geometry(self.x, self.y))
        return self._give(K if dtype is None else K.to(dtype))

    # --- what products give --------------------------------------------------------------

    @cached_property
    def _covariance(self) -> TiledCovariance:
        if self.y is not None:
            raise ShapeError(
                f"only the square matrix of X with itself is solved, got X {tuple(self.x.shape)} "
                f"and Y {tuple(self.y.shape)}; leave Y out"
            )
        assert self._noise is not None
        found = TiledCovariance(self.kernel, self.x.detach(), self._noise.detach(), rank=self.rank)
        found.rows = self.chunk
        return found

    def pivoted_cholesky(self, rank: int, tol: float = 1e-10) -> tuple[Any, Any]:
        r"""L ``(n, k)`` and the rows it was made from: :math:`LL^\top` is what they explain of K.

        What is left is positive semidefinite, so that its trace :math:`\operatorname{tr}K -
        \|L\|_F^2` is the error in the trace norm. Noise on the diagonal is nobody's to explain.

        Parameters
        ----------
        rank : columns at most
        tol : stop when no variance above this share of the largest is left
        """
        self._covariance  # noqa: B018  # refuses two sets of rows
        L, chosen = pivoted_cholesky(self.kernel, self.x, rank, tol=tol)
        return self._give(L), self._give(chosen)

    def nystrom(self, landmarks: Any, random_state: RandomState = None) -> Any:
        r"""L ``(n, k)`` with :math:`LL^\top = K_{xu}K_{uu}^{-1}K_{ux}` for rows u of X.

        Parameters
        ----------
        landmarks : their numbers, or how many are drawn
        random_state : of the draw
        """
        self._covariance  # noqa: B018
        n = self.shape[0]
        if isinstance(landmarks, int | np.integer):
            if not 0 < landmarks <= n:
                raise ValueError(f"there are {n} rows to choose landmarks from, got {landmarks}")
            rng = Key.of(random_state).fold("landmarks").numpy()
            landmarks = np.sort(rng.permutation(n)[:landmarks])
        at = torch.as_tensor(landmarks, dtype=torch.int64, device=self.x.device)
        return self._give(explained_by(self.kernel, self.x, self.x[at]))

    def solve(self, b: Any, *, tol: float = 1e-8, max_iter: int | None = None) -> Any:
        r""":math:`K^{-1}b` for a vector or columns: few rows by a Cholesky factor, more by
        preconditioned conjugate gradients.

        Parameters
        ----------
        b : ``(n,)`` or ``(n, r)``
        tol : relative residual of every column
        max_iter : products at most; None is 1,000
        """
        given = as_tensor(b, "b", self.x).to(self.x.dtype).detach()
        columns = given[:, None] if given.ndim == 1 else given
        if columns.ndim != 2 or len(columns) != self.shape[0]:
            raise ShapeError(f"b must have {self.shape[0]} rows, got shape {tuple(given.shape)}")
        x = self._solved(columns, tol, max_iter).x.reshape(given.shape)
        return x if isinstance(b, Tensor) else to_numpy(x)

    def _solved(self, b: Tensor, tol: float, max_iter: int | None = None) -> Solved:
        found = self._factored(b, tol) if self.shape[0] <= DENSE else None
        if found is None:
            found = self._covariance.solve(b, tol, 1000 if max_iter is None else max_iter)
        worst = float(found.error.max()) if found.error.numel() else 0.0
        if worst > tol:
            warnings.warn(
                f"conjugate gradients stopped after {found.steps} products at a relative residual "
                f"of {worst:.2g}, above tol={tol:g}; add noise to the kernel (+ White), raise rank "
                "or max_iter",
                NotConverged,
                stacklevel=3,
            )
        return found

    @torch.no_grad()
    def _factored(self, b: Tensor, tol: float) -> Solved | None:
        """The same by a factor, where that is exact enough."""
        self._covariance  # noqa: B018  # refuses two sets of rows
        K = self.kernel.of(Geometry(self.x))
        L, failed = torch.linalg.cholesky_ex(K)
        if bool(failed):
            return None
        x = torch.cholesky_solve(b, L)
        error = (b - K @ x).norm(dim=0) / b.norm(dim=0).clamp(min=torch.finfo(b.dtype).tiny)
        none = b.new_zeros(b.shape[1], 0)
        return Solved(x, 0, error, none, none) if float(error.max()) <= tol else None

    def trace(self, probes: int | None = None, random_state: RandomState = None) -> Any:
        if probes is None and self.y is None:
            return self._give(self.kernel.diagonal(self.x).sum())
        return super().trace(probes, random_state)

    def inverse_trace(
        self, probes: int = 32, random_state: RandomState = None, *, tol: float = 1e-6
    ) -> Any:
        r"""Hutchinson's estimate :math:`\overline{z^\top K^{-1}z}` of the trace of the inverse."""
        z = self.signs(probes, random_state)
        return self._give((z * self._solved(z, tol).x).sum(0).mean())

    def logdet(
        self, probes: int = 16, random_state: RandomState = None, *, tol: float = 1e-6
    ) -> Any:
        r""":math:`\log|K| \approx \log|P| + \overline{z^\top P^{-1/2}\log(P^{-1/2}KP^{-1/2})P^{-1/2}z}`
        by Lanczos, with P the preconditioner and :math:`z \sim N(0, P)`."""
        P = self._covariance.preconditioner
        z = P.draw(probes, Key.of(random_state).fold("probes").torch(self.x.device))
        found = self._covariance.solve(z, tol)
        return self._give(P.log_det + ((z * P.solve(z)).sum(0) * log_quadratic(found)).mean())


def _checked(X: Any, name: str, like: Tensor | None) -> tuple[Tensor, bool]:
    as_tensor(X, name)  # refuses what is not finite
    x, arrays = rows(X)
    if not math.prod(x.shape):
        raise ShapeError(f"{name} needs at least one row and one column, got {tuple(x.shape)}")
    return (x if like is None else x.to(like)), arrays
