r"""The directions that a large matrix maps to most, from products with a few random vectors."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

TALL = 2**14  # rows from which a block is made orthonormal by two Cholesky factors


class Map(Protocol):
    """A matrix ``(n, d)`` by its products."""

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device

    def dot(self, V: Tensor) -> Tensor:
        """XV for V ``(d, k)``."""
        ...

    def tdot(self, U: Tensor) -> Tensor:
        r""":math:`X^\\top U` for U ``(n, k)``."""
        ...


class CentredRows:
    r"""Rows as :math:`\operatorname{diag}(r)(X - \mathbf 1\mu^\top)`, never formed: X may be sparse.

    Parameters
    ----------
    x : ``(n, d)``, dense or sparse by rows (CSR)
    mean : ``(d,)``; None: rows as they are
    root : ``(n,)``, square roots of weights

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> CentredRows(x, x.mean(0)).dot(torch.eye(2)).tolist()
    [[-1.0, -2.0], [1.0, 2.0]]
    """

    def __init__(self, x: Tensor, mean: Tensor | None = None, root: Tensor | None = None) -> None:
        if x.layout != torch.strided and x.device.type == "cpu":
            x = _short(x)
        self.x, self.mean, self.root = x, mean, root
        self.shape: tuple[int, int] = (x.shape[0], x.shape[1])
        self.dtype, self.device = x.dtype, x.device
        self._t: Tensor | None = None
        self._host: tuple[Any, Any] | None = None

    def dot(self, V: Tensor) -> Tensor:
        if self._by_scipy(V):
            out = torch.from_numpy(self._pair[0] @ V.numpy())
        else:
            out = self.x @ V
        if self.mean is not None:
            out = out - self.mean @ V
        return out if self.root is None else out * (self.root[:, None] if V.ndim > 1 else self.root)

    def tdot(self, U: Tensor) -> Tensor:
        if self.root is not None:
            U = U * (self.root[:, None] if U.ndim > 1 else self.root)
        if self._by_scipy(U):
            out = torch.from_numpy(self._pair[1] @ U.numpy())
        else:
            out = self._transposed @ U
        if self.mean is None:
            return out
        return out - (torch.outer(self.mean, U.sum(0)) if U.ndim > 1 else self.mean * U.sum())

    def gram(self, v: Tensor) -> Tensor:
        """A product of v with the smaller of the two products of the rows with themselves.

        ``(n,)`` to ``(n,)`` for wide rows, else ``(d,)`` to ``(d,)``.
        """
        wide = self.shape[0] < self.shape[1]
        if not self._by_scipy(v):
            return self.dot(self.tdot(v)) if wide else self.tdot(self.dot(v))
        from groundstate.math.linalg.sparse_numba import twice

        if wide and self.root is not None:
            v = v * self.root
        shift = v.sum() if wide else torch.zeros(()) if self.mean is None else self.mean @ v
        *A, a, weight = self._longer
        found, total = twice(*A, v.numpy(), a, v.numpy().dtype.type(shift), weight)
        out = torch.from_numpy(found)
        if self.mean is not None:
            out -= total if wide else self.mean * total
        return out * self.root if wide and self.root is not None else out

    @cached_property
    def _longer(self) -> list[Any]:
        """The longer side of sparse rows, what is taken off each of it, and its weights."""
        wide = self.shape[0] < self.shape[1]
        A = self._transposed if wide else self.x
        one = torch.ones(len(A), dtype=self.dtype)
        mean = torch.zeros_like(one) if self.mean is None else self.mean.to(self.dtype)
        weight = one if wide or self.root is None else self.root.square()
        parts = A.crow_indices(), A.col_indices(), A.values(), mean if wide else one, weight
        return [part.numpy() for part in parts]

    def _by_scipy(self, V: Tensor) -> bool:
        """Products of sparse rows with one vector, in which SciPy is faster than torch."""
        return V.ndim == 1 and self.x.layout != torch.strided and self.device.type == "cpu"

    @property
    def _pair(self) -> tuple[Any, Any]:
        """Sparse rows and their transpose as SciPy's, on the same numbers."""
        if self._host is None:
            from scipy.sparse import csr_matrix

            parts = (self.x.values(), self.x.col_indices(), self.x.crow_indices())
            rows = csr_matrix(tuple(part.numpy() for part in parts), shape=self.shape)
            self._host = rows, rows.T
        return self._host

    @property
    def _transposed(self) -> Tensor:
        if self.x.layout == torch.strided:
            return self.x.T
        if self._t is None:
            self._t = _transposed(self.x)
        return self._t


def _csr(at: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)  # in beta
        return torch.sparse_csr_tensor(at, columns, values, shape)


def _short(x: Tensor) -> Tensor:
    """CSR with indices of 32 bits, whose products are a quarter faster."""
    if x.values().numel() >= 2**31:
        return x
    return _csr(x.crow_indices().int(), x.col_indices().int(), x.values(), tuple(x.shape))


def _transposed(x: Tensor) -> Tensor:
    """The transpose of a CSR tensor as CSR, whose products are fast."""
    if x.device.type != "cpu":
        return x.t().to_sparse_csr()
    from scipy.sparse import csc_matrix

    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    t = csc_matrix(parts, shape=(x.shape[1], x.shape[0])).tocsr()
    at, columns, values = map(torch.from_numpy, (t.indptr, t.indices, t.data))
    return _csr(at, columns, values, t.shape)


def orthonormal(Y: Tensor) -> Tensor:
    """Orthonormal columns of the same span; tall blocks by Cholesky factors, twice."""
    if Y.shape[0] < TALL:
        return torch.linalg.qr(Y).Q
    for _ in range(2):
        R, failed = torch.linalg.cholesky_ex((Y.T @ Y).double(), upper=True)
        if bool(failed):
            return torch.linalg.qr(Y).Q
        Y = torch.linalg.solve_triangular(R.to(Y), Y, upper=True, left=False)
    return Y


def range_finder(X: Map, size: int, *, power: int, generator: torch.Generator) -> Tensor:
    r"""Q ``(n, size)`` with :math:`X \approx QQ^\top X`, after ``power`` steps of :math:`XX^\top`.

    Every product is made orthonormal, so that small directions survive.
    """
    n, d = X.shape
    size = min(size, n, d)
    noise = torch.randn(
        min(n, d), size, generator=generator, dtype=torch.float64, device=generator.device
    )
    noise = noise.to(X.device, X.dtype)
    Q = orthonormal(noise if n <= d else X.dot(noise))
    for _ in range(power):
        Q = orthonormal(X.dot(orthonormal(X.tdot(Q))))
    return Q


def randomized_svd(
    X: Any, k: int, *, power: int = 4, oversamples: int = 10, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The k largest singular values of X with their vectors, :math:`X \approx U\operatorname{diag}(s)V^\top`.

    A Rayleigh-Ritz step ends it: :math:`XV = U\operatorname{diag}(s)` holds to rounding, so that the
    lengths of codes XV are the singular values, however little the power steps have converged.

    Parameters
    ----------
    X : a matrix by its products (``shape``, ``dtype``, ``device``, ``dot``, ``tdot``), or a tensor
    k : singular values wanted
    power : steps of the power method; each makes what is small smaller by its squared ratio
    oversamples : random vectors beyond k
    generator : source of the random vectors

    Returns
    -------
    U : ``(n, k)``
    s : ``(k,)``, the largest first
    Vt : ``(k, d)``

    Examples
    --------
    >>> X = torch.diag(torch.tensor([3.0, 2.0, 1.0]).double())
    >>> g = torch.Generator().manual_seed(0)
    >>> randomized_svd(X, 2, generator=g)[1].round().tolist()
    [3.0, 2.0]
    """
    rows: Map = CentredRows(X) if isinstance(X, Tensor) else X
    Q = range_finder(rows, k + oversamples, power=power, generator=generator)
    V = orthonormal(rows.tdot(Q))  # (d, size)
    images = rows.dot(V)  # (n, size)
    Q = orthonormal(images)
    U, s, Wt = torch.linalg.svd(Q.T @ images, full_matrices=False)
    return Q @ U[:, :k], s[:k], Wt[:k] @ V.T
