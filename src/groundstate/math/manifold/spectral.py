r"""Coordinates from a graph: the slowest functions on it.

Of symmetric weights W with degrees :math:`D = \mathrm{diag}(W1)` they solve :math:`Wy = \lambda Dy` with
the largest :math:`\lambda` below that of the constant, which is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from groundstate.math.linalg.spectrum import eigenpairs

F64 = NDArray[np.float64]
FEW = 300  # nodes up to which all eigenvalues are found at once
SHIFT = 1e-5  # beyond the spectrum: where a factorised matrix is inverted
SEED = 0  # of the vector that a search begins with; the solution does not depend on it


def graph_axes(W: Any, count: int, tol: float = 0.0, invert: bool = True) -> tuple[F64, F64]:
    r"""Solutions of :math:`Wy = \lambda Dy` after the constant one, with :math:`y^\top Dy = 1`.

    Parameters
    ----------
    W : symmetric weights ``(n, n)``, dense or sparse; the diagonal does not count
    count : how many
    tol : relative accuracy of the eigenvalues; 0 is machine precision
    invert : factorise the matrix, which converges in a few steps, or only multiply by it, which is
        enough for a rough start

    Returns
    -------
    λ ``(count,)``, the largest first, and Y ``(n, count)``; the entry of largest modulus of each
    column is positive

    Examples
    --------
    >>> W = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    >>> np.diff(graph_axes(W, 1)[1][:, 0]).round(3).tolist()  # along a path
    [-0.146, -0.354, -0.354, -0.146]
    """
    A = csr_array(W) if not isinstance(W, np.ndarray) else np.array(W, np.float64)
    n = A.shape[0]
    if count >= n:
        raise ValueError(f"n_components must be less than n_samples={n}, got {count}")
    if isinstance(A, np.ndarray):
        np.fill_diagonal(A, 0.0)
    else:
        A = A - diags_array(A.diagonal())
    degree = np.asarray(A.sum(1)).ravel()
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    values, vectors = _largest(A, 1.0 / root, count + 1, tol, invert)
    Y = vectors / root[:, None]
    top = Y[np.abs(Y).argmax(0), np.arange(Y.shape[1])]
    return values[1:], (Y * np.where(top < 0, -1.0, 1.0))[:, 1:]


def _largest(A: Any, scale: F64, count: int, tol: float, invert: bool) -> tuple[F64, F64]:
    """The largest eigenvalues of :math:`D^{-1/2}AD^{-1/2}` and their vectors."""
    n, whole = A.shape[0], isinstance(A, np.ndarray)
    if n <= FEW or count >= n - 1:
        table = A if whole else A.toarray()
        values, vectors = eigenpairs(scale[:, None] * table * scale, n - count, n - 1)
        return values[::-1], vectors[:, ::-1]
    start = np.random.default_rng(SEED).uniform(-1, 1, n)
    if whole:
        N = scale[:, None] * A * scale
        factor = cho_factor((1.0 + SHIFT) * np.eye(n) - N, overwrite_a=True, check_finite=False)
        inverse = LinearOperator((n, n), lambda v: -cho_solve(factor, v), dtype=np.float64)
        values, vectors = eigsh(
            N, count, sigma=1.0 + SHIFT, which="LM", tol=tol, v0=start, OPinv=inverse
        )
        order = values.argsort()[::-1]
        return values[order], vectors[:, order]
    N = diags_array(scale) @ A @ diags_array(scale)
    if invert:
        shifted = (N - (1.0 + SHIFT) * eye_array(n)).tocsc()
        values, vectors = eigsh(shifted, count, sigma=0.0, which="LM", tol=tol, v0=start)
        values = values + 1.0 + SHIFT
    else:
        try:
            values, vectors = eigsh(N, count, which="LA", tol=tol, v0=start)
        except ArpackNoConvergence as slow:
            values, vectors = slow.eigenvalues, slow.eigenvectors
            if len(values) < count:
                return _largest(A, scale, count, tol, True)
    order = values.argsort()[::-1]
    return values[order], vectors[:, order]


def bottom_axes(M: Any, count: int, tol: float = 0.0, dense: bool = False) -> tuple[F64, F64]:
    """The smallest eigenvalues of a positive matrix after the first, and their unit vectors.

    The first is zero with the constant vector, for matrices of differences.

    >>> bottom_axes(csr_array([[1.0, -1.0], [-1.0, 1.0]]), 1)[0].round(9).tolist()
    [2.0]
    """
    n = M.shape[0]
    if count >= n:
        raise ValueError(f"n_components must be less than n_samples={n}, got {count}")
    if dense or n <= FEW or count + 1 >= n - 1:
        table = M.toarray() if hasattr(M, "toarray") else M
        values, vectors = eigenpairs(table, 0, count)
    else:
        size = float(abs(M).sum(1).max())
        start = np.random.default_rng(SEED).uniform(-1, 1, n)
        shifted = csr_array(M + 1e-12 * size * eye_array(n)).tocsc()
        values, vectors = eigsh(shifted, count + 1, sigma=0.0, which="LM", tol=tol, v0=start)
        order = values.argsort()
        values, vectors = values[order] - 1e-12 * size, vectors[:, order]
    top = vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])]
    return values[1:], (vectors * np.where(top < 0, -1.0, 1.0))[:, 1:]


def spread_start(W: Any, count: int, centres: Any, width: float = 10.0) -> F64:
    """A start for a map: the slowest functions of every part of a graph, the parts side by side.

    Parameters
    ----------
    W : symmetric sparse weights ``(n, n)``
    count : dimensions of the map
    centres : called with the labels of the parts ``(n,)`` where there are several, gives places
        ``(parts, count)`` for them
    width : of the map in every dimension
    """
    n = W.shape[0]
    parts, label = connected_components(W, directed=False)
    if parts == 1 and n > count + 1:
        Y = graph_axes(W, count, 1e-4, invert=False)[1]
        return _scaled(Y, width)
    Y = np.zeros((n, count))
    at = np.asarray(centres(label), np.float64)
    gap = np.linalg.norm(at[:, None] - at, axis=-1) + np.diag(np.full(parts, np.inf))
    for part in range(parts):
        own = np.flatnonzero(label == part)
        room = gap[part].min() / 2 if parts > 1 else 1.0
        room = room if np.isfinite(room) and room > 0 else 1.0
        Y[own] = at[part]
        if len(own) > 2 * count:
            inside = graph_axes(W[own][:, own], count, 1e-4, invert=False)[1]
            Y[own] += room * inside / np.abs(inside).max(0).clip(1e-300)
    return _scaled(Y, width)


def _scaled(Y: F64, width: float) -> F64:
    low, high = Y.min(0), Y.max(0)
    scaled: F64 = width * (Y - low) / np.where(high > low, high - low, 1.0)
    return scaled
