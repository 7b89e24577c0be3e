r"""Low rank: the best rank-k factors of a matrix, and low rank plus diagonal solved by its small side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import eye_like, matrix
from groundstate.math.linalg.eigen import svd_flip

METHODS = ("auto", "exact", "randomised")
TALL = 4  # from this ratio of sides the small Gram matrix is cheaper than a singular value decomposition
EVEN = 100.0  # and as good while the kept singular values span no more than this


@dataclass(frozen=True)
class RankK:
    r""":math:`A \approx \sum_{i\le k} s_iu_iv_i^\top`; unpacks as ``U, s, V``.

    Attributes
    ----------
    U : ``(..., m, k)``, left singular vectors in columns
    s : ``(..., k)``, singular values, descending
    V : ``(..., n, k)``, right singular vectors in columns
    error : :math:`\|A - USV^*\|_F`, ``(...,)``; :math:`\sqrt{\sum_{i>k}s_i^2}` for exact factors
    storage : numbers to be stored, :math:`k(1 + m + n)` for each matrix
    """

    U: Any
    s: Any
    V: Any
    error: Any

    @property
    def storage(self) -> int:
        k: int = self.s.shape[-1]
        return k * (1 + self.U.shape[-2] + self.V.shape[-2])

    def to_dense(self) -> Any:
        """The matrix of rank k, ``(..., m, n)``."""
        V = self.V.mH if isinstance(self.V, Tensor) else self.V.swapaxes(-1, -2).conj()
        return (self.U * self.s[..., None, :]) @ V

    def __iter__(self) -> Iterator[Any]:
        return iter((self.U, self.s, self.V))

    def __repr__(self) -> str:
        m, n, k = self.U.shape[-2], self.V.shape[-2], self.s.shape[-1]
        return f"RankK({m} x {n}, k={k}, error={self.error}, storage={self.storage})"


@takes_arrays("A")
def low_rank(
    A: Any,
    k: int,
    method: str = "auto",
    n_iter: int = 4,
    n_oversamples: int = 10,
    *,
    random_state: RandomState = 0,
) -> Any:
    r"""The rank-k matrix nearest to A, :math:`\sum_{i\le k} s_iu_iv_i^*` (Eckart and Young).

    The randomised method finds the range of A by ``n_iter`` rounds of
    :math:`Q \leftarrow \operatorname{orth}(A^*(AQ))` from :math:`k + p` random directions on its short
    side, in :math:`O(mnk)`.

    Parameters
    ----------
    A : ``(..., m, n)``
    k : rank, at most min(m, n)
    method : "exact", "randomised", or "auto": randomised where k is below a tenth of the shorter side
    n_iter : rounds; more where singular values fall slowly
    n_oversamples : p, directions beyond k
    random_state : of the random directions

    Returns
    -------
    RankK : with ``U, s, V``, ``error`` and ``storage``; the largest entry of each left vector is
        positive. The randomised factors of ``s`` have the gradient of the exact ones.

    Examples
    --------
    >>> found = low_rank([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]], 1)
    >>> found.s.tolist(), found.error, found.storage
    ([3.0], 1.0, 6)
    """
    m, n = matrix(A).shape[-2:]
    if not 1 <= k <= min(m, n):
        raise ValueError(f"k must lie between 1 and {min(m, n)}, the shorter side of A, got {k}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if n_iter < 0 or n_oversamples < 0:
        raise ValueError(f"n_iter={n_iter} and n_oversamples={n_oversamples} must not be negative")
    if method == "auto":
        method = "randomised" if k < 0.1 * min(m, n) else "exact"
    if m < n:  # work on the side with fewer columns
        V, s, U, error = _factors(A.mH, k, method, n_iter, n_oversamples, random_state)
    else:
        U, s, V, error = _factors(A, k, method, n_iter, n_oversamples, random_state)
    U, Vh = svd_flip(U, V.mH)
    return RankK(U, s, Vh.mH, error)


def _factors(
    A: Tensor, k: int, method: str, n_iter: int, extra: int, random_state: RandomState
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """U, s, V and the error, for A with at least as many rows as columns."""
    m, n = A.shape[-2:]
    if method == "exact":
        short = _by_gram(A, k) if m >= TALL * n and not A.requires_grad else None
        if short is not None:
            return short
        U, s, Vh = torch.linalg.svd(A, full_matrices=False)
        error = torch.linalg.vector_norm(s[..., k:], dim=-1)
        return U[..., :k], s[..., :k], Vh[..., :k, :].mH, error
    with torch.no_grad():
        Q = _range(A.detach(), min(k + extra, n), n_iter, random_state)
    U, s, Wh = torch.linalg.svd(A @ Q, full_matrices=False)
    U, s, V = U[..., :k], s[..., :k], Q @ Wh.mH[..., :k]
    return U, s, V, _left_over(A, U, s, V)


def _by_gram(A: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    r"""Factors from :math:`A^*A`; None where squaring would cost digits of the kept singular values."""
    values, vectors = torch.linalg.eigh(A.mH @ A)
    values, vectors = values.flip(-1).clamp(min=0), vectors.flip(-1)
    s, V = values[..., :k].sqrt(), vectors[..., :k]
    if not bool((s[..., 0] < EVEN * s[..., -1]).all()):
        return None
    U = (A @ V) / s[..., None, :]
    return U, s, V, _left_over(A, U, s, V)


def _range(A: Tensor, width: int, n_iter: int, random_state: RandomState) -> Tensor:
    """An orthonormal basis ``(..., n, width)`` of what A acts on most."""
    n = A.shape[-1]
    start = Key.of(random_state).fold("low_rank").numpy().standard_normal((n, width))
    Q = torch.as_tensor(start).to(A.dtype).to(A.device).expand(*A.shape[:-2], n, width)
    for _ in range(max(1, n_iter)):
        Q = torch.linalg.qr(A.mH @ (A @ Q)).Q
    return Q


def _left_over(A: Tensor, U: Tensor, s: Tensor, V: Tensor) -> Tensor:
    r""":math:`\|A - USV^*\|_F`: by Pythagoras, or term by term where that would cancel."""
    whole = torch.linalg.matrix_norm(A).square()
    square = whole - s.square().sum(-1)
    root = torch.finfo(s.dtype).eps ** 0.5
    if bool((square.detach() > root * whole.detach()).all()):
        return square.sqrt()
    return torch.linalg.matrix_norm(A - (U * s[..., None, :]) @ V.mH)


@dataclass(frozen=True)
class CompressedImage:
    """An image of rank k.

    Attributes
    ----------
    image : of the shape of the original
    storage, original : numbers stored, now and before
    error : Frobenius norm of the difference
    """

    image: Any
    storage: int
    original: int
    error: Any

    @property
    def share(self) -> float:
        """Numbers stored, relative to the original."""
        return self.storage / self.original


@takes_arrays("image")
def compress_image(image: Any, k: int, method: str = "exact") -> Any:
    r"""An image by k singular values and vectors of each channel: :math:`k(1 + h + w)` numbers for
    :math:`hw`.

    Parameters
    ----------
    image : grey ``(h, w)`` or colour ``(h, w, channels)``
    k : rank
    method : as in ``low_rank``

    Returns
    -------
    CompressedImage

    Examples
    --------
    >>> import numpy as np
    >>> found = compress_image(np.ones((450, 333)), 50)
    >>> found.storage, found.original, round(found.share, 4)
    (39200, 149850, 0.2616)
    """
    if image.ndim not in (2, 3):
        raise ValueError(f"image must be (h, w) or (h, w, channels), got {tuple(image.shape)}")
    channels = image.movedim(-1, 0) if image.ndim == 3 else image[None]
    found = low_rank(channels, k, method)
    dense = found.to_dense()
    dense = dense.movedim(0, -1) if image.ndim == 3 else dense[0]
    error = torch.linalg.vector_norm(found.error)
    return CompressedImage(dense, len(channels) * found.storage, image.numel(), error)


class LowRank:
    r""":math:`P = LL^\top + \operatorname{diag}(D)`, solved in :math:`O(nk)` by its small side.

    Parameters
    ----------
    L : ``(..., n, k)``
    D : ``(..., n)``, positive

    Attributes
    ----------
    log_det : :math:`\log|P|`, ``(...,)``

    Examples
    --------
    >>> P = LowRank(torch.ones(3, 1).double(), torch.ones(3).double())
    >>> P.solve(torch.ones(3, 1).double()).flatten().tolist(), round(float(P.log_det.exp()), 6)
    ([0.25, 0.25, 0.25], 4.0)
    """

    def __init__(self, L: Tensor, D: Tensor) -> None:
        self.L, self.D = L, D
        self.scaled = L / D[..., None]
        self.small = torch.linalg.cholesky(eye_like(L) + L.mT @ self.scaled)
        diagonal = self.small.diagonal(dim1=-2, dim2=-1)
        self.log_det = 2 * diagonal.log().sum(-1) + D.log().sum(-1)

    def solve(self, r: Tensor) -> Tensor:
        r""":math:`P^{-1}r` for columns ``(..., n, m)``."""
        inner = torch.cholesky_solve(self.scaled.mT @ r, self.small)
        return r / self.D[..., None] - self.scaled @ inner

    def root(self) -> Tensor:
        r"""W with :math:`P^{-1} = \operatorname{diag}(D)^{-1} - WW^\top`, ``(..., n, k)``."""
        return torch.linalg.solve_triangular(self.small, self.scaled.mT, upper=False).mT

    def draw(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Columns with covariance P, ``(rows, n)``."""
        like = {"dtype": self.L.dtype, "device": self.L.device, "generator": generator}
        first = torch.randn(self.L.shape[1], n, **like)  # type: ignore[call-overload]
        second = torch.randn(len(self.D), n, **like)  # type: ignore[call-overload]
        found: Tensor = self.L @ first + self.D.sqrt()[:, None] * second
        return found
