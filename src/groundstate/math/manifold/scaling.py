r"""Coordinates from distances: :math:`B = -\tfrac12 H(D \circ D)H = YY^\top` by its largest eigenvalues."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays

SMALL = 400  # rows up to which all eigenvalues are found at once
BLOCK, STEPS = 8, 60  # vectors beyond those asked for, and products, of a search for a few
TIGHT = 1e-12  # of the largest eigenvalue: what is left of Bv − λv


@takes_arrays("D")
def double_centred(D: Any) -> Any:
    r""":math:`-\tfrac12 H(D \circ D)H` with :math:`H = I - 11^\top/n`.

    >>> double_centred([[0.0, 2.0], [2.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    square = D.square()
    rows, columns = square.mean(1, keepdim=True), square.mean(0, keepdim=True)
    return -0.5 * (square - rows - columns + square.mean())


@takes_arrays("D")
def classical_scaling(D: Any, n_components: int = 2) -> tuple[Any, Any]:
    r"""Coordinates :math:`V\sqrt{\lambda_+}` of the largest eigenvalues of `double_centred`.

    Parameters
    ----------
    D : distances ``(n, n)``, symmetric with a zero diagonal
    n_components : how many; the entry of largest modulus of each column is positive

    Returns
    -------
    Y ``(n, n_components)`` and the eigenvalues ``(n_components,)``, the largest first

    Examples
    --------
    >>> Y, values = classical_scaling([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]], 3)
    >>> values.round(6).tolist()[:2]
    [12.964148, 3.702519]
    """
    values, vectors = top_of_centred(D.double(), n_components)
    Y = vectors * values.clamp_min(0).sqrt()
    return Y.to(D.dtype), values.to(D.dtype)


def top_of_centred(D: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues of the centred matrix of distances and their vectors, ``(n, count)``."""
    n = len(D)
    if count > n:
        raise ValueError(f"n_components must be at most n_samples={n}, got {count}")
    if n <= SMALL or count > n // 8:
        values, vectors = torch.linalg.eigh(double_centred(D))
        values, vectors = values.flip(0)[:count], vectors.flip(1)[:, :count]
    else:
        square = D.square()

        def times(v: Tensor) -> Tensor:
            out = square @ (v - v.mean(0))
            return -0.5 * (out - out.mean(0))

        values, vectors = top_eigenpairs(times, n, count, D)
    top = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return values, vectors * torch.where(top < 0, -1.0, 1.0)


def top_of_rows(X: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    r"""The same of Euclidean distances between rows, whose centred matrix is :math:`(HX)(HX)^\top`, and
    the mean square of each row's distances, ``(n,)``.
    """
    n = len(X)
    if count > n:
        raise ValueError(f"n_components must be at most n_samples={n}, got {count}")
    about = X - X.mean(0)
    vectors, values, _ = torch.linalg.svd(about, full_matrices=False)
    short = max(0, count - len(values))  # all others are zero, and so are their coordinates
    values = torch.nn.functional.pad(values[:count].square(), (0, short))
    vectors = torch.nn.functional.pad(vectors[:, :count], (0, short))
    square = about.square().sum(1)
    return values, vectors, square + square.mean()


def top_eigenpairs(times: Any, n: int, count: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues of a symmetric map ``times(v)`` of blocks ``(n, m)``, and their vectors.

    A Krylov space of blocks, all of it kept orthonormal; the best of the whole space after every
    product, until what is left of them is below 1e-12 of the largest.
    """
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(n, count + BLOCK, generator=generator, dtype=like.dtype).to(like.device)
    basis = torch.linalg.qr(start).Q
    images = times(basis)
    values = vectors = torch.empty(0)
    for _ in range(STEPS):
        inner = basis.T @ images
        all_values, weights = torch.linalg.eigh((inner + inner.T) / 2)
        weights = weights.flip(1)[:, :count]
        values = all_values.flip(0)[:count]
        vectors = basis @ weights
        rest = images @ weights - vectors * values
        size = torch.linalg.vector_norm(rest, dim=0).max()
        if bool(size <= TIGHT * all_values.abs().max()) or basis.shape[1] + count + BLOCK > n:
            break
        new = images[:, -(count + BLOCK) :]
        for _ in range(2):  # once more: rounding
            new = torch.linalg.qr(new - basis @ (basis.T @ new)).Q
        basis, images = torch.cat([basis, new], 1), torch.cat([images, times(new)], 1)
    return values, vectors


def additive_constant(D: Tensor) -> Tensor:
    r"""The least c for which :math:`D + c` off the diagonal is Euclidean (Cailliez).

    It is the largest eigenvalue of :math:`\begin{pmatrix}0 & 2B_2\\ -I & -4B_1\end{pmatrix}` with
    :math:`B_2, B_1` the centred :math:`-\tfrac12 D\circ D` and :math:`-\tfrac12 D`.
    """
    n = len(D)
    H = torch.eye(n, dtype=D.dtype, device=D.device) - 1.0 / n
    second, first = -0.5 * H @ D.square() @ H, -0.5 * H @ D @ H
    zero, one = torch.zeros_like(D), torch.eye(n, dtype=D.dtype, device=D.device)
    block = torch.cat([torch.cat([zero, 2 * second], 1), torch.cat([-one, -4 * first], 1)])
    values = torch.linalg.eigvals(block)
    return values.real.max().clamp_min(0)


def spread_rows(distance_to: Any, n: int, count: int, first: int = 0) -> Tensor:
    """Numbers of rows far from each other, each the farthest from those before (max-min).

    ``distance_to(i)`` gives the distances of all rows to row i.
    """
    chosen = [first]
    away = distance_to(first)
    for _ in range(1, min(count, n)):
        at = int(away.argmax())
        chosen.append(at)
        away = torch.minimum(away, distance_to(at))
    return torch.tensor(chosen)
