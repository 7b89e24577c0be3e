r"""What a generalised linear model asks of its rows: scores, gradients, weighted Gram matrices.

The last entry of a parameter vector belongs to the intercept, where there is one. The three kinds
of rows (NumPy, sparse, a GPU) answer in NumPy float64.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.learn.solvers.glm.irls_numba import scaled_block, sparse_gram

Array = NDArray[np.float64]
BLOCK = 2**16  # elements of a block: it stays in the cache between its uses
FAR = 1e3  # means this many spreads from 0 cost digits: such columns are centred
SINGLE = 2**27  # products from which a float32 Gram matrix pays


class Rows(Protocol):
    """The design matrix X, with a column of ones where there is an intercept."""

    size: int  # unknowns
    intercept: bool
    shift: Array | None  # subtracted from the columns
    exact: bool  # whether Gram matrices are float64

    def score(self, theta: Array) -> Array: ...

    def sums(self, g: Array, h: Array | None) -> tuple[Array, Array | None]: ...

    def squares(self) -> Array: ...


def over_shards(*sums: Any) -> tuple[Any, ...]:
    """Every sum added over the shards."""
    reduce = current()
    if reduce.world == 1:
        return sums
    named = {str(i): torch.as_tensor(v) for i, v in enumerate(sums) if v is not None}
    found = {k: v.numpy() for k, v in reduce.sum_dict(named).items()}
    return tuple(found.get(str(i)) for i in range(len(sums)))


class DenseRows:
    """Rows in memory, walked block by block."""

    def __init__(self, x: NDArray[Any], intercept: bool) -> None:
        self.x, self.intercept = x, intercept
        n, p = x.shape
        self.size = p + intercept
        self.step = max(256, BLOCK // max(1, p))
        self.shift = self._far() if intercept else None
        self.exact = n * p * p < SINGLE
        self.buffer: NDArray[Any] | None = None
        self.plain = self.shift is None and x.dtype == np.float64

    def _far(self) -> Array | None:
        """The means, where they are so large that they drown the spread."""
        some = self.x[:: max(1, len(self.x) // 512)].astype(np.float64)
        if not (np.abs(some.mean(0)) > FAR * some.std(0)).any() and current().world == 1:
            return None
        total, count = over_shards(self.x.sum(0, dtype=np.float64), np.float64(len(self.x)))
        mean: Array = total / float(count)
        return mean

    def block(self, at: int) -> Array:
        piece = self.x[at : at + self.step]
        if self.plain:
            return piece
        piece = piece.astype(np.float64)
        return piece if self.shift is None else piece - self.shift

    def _space(self) -> NDArray[Any]:
        """Room for one scaled block, kept: fresh pages cost as much as filling them."""
        kind = np.dtype(np.float64 if self.exact else np.float32)
        if self.buffer is None or self.buffer.dtype != kind:
            self.buffer = np.empty((min(self.step, len(self.x)), self.x.shape[1] + 1), kind)
        return self.buffer

    def score(self, theta: Array) -> Array:
        w = theta[:-1] if self.intercept else theta
        if self.plain:
            eta: Array = self.x @ w
        else:
            eta = np.empty(len(self.x))
            for at in range(0, len(eta), self.step):
                eta[at : at + self.step] = self.block(at) @ w
        if self.intercept:
            eta += theta[-1]
        return eta

    def sums(self, g: Array, h: Array | None) -> tuple[Array, Array | None]:
        """Xᵀg and, with h, Xᵀ diag(h) X, over all shards."""
        p = self.x.shape[1]
        gradient = np.zeros(self.size)
        gram = None if h is None else np.zeros((self.size, self.size))
        buffer = self._space() if gram is not None else np.empty((0, 0))
        if self.plain and gram is None:
            gradient[:p] = g @ self.x
        else:
            for at in range(0, len(self.x), self.step):
                x, piece = self.block(at), slice(at, at + self.step)
                gradient[:p] += g[piece] @ x
                if gram is not None and h is not None:
                    rows = buffer[: len(x)]
                    scaled_block(x, h[piece], rows)
                    if not self.intercept:
                        rows = rows[:, :p]
                    gram += rows.T @ rows
        if self.intercept:
            gradient[-1] = g.sum()
        found: tuple[Array, Array | None] = over_shards(gradient, gram)
        return found

    def squares(self) -> Array:
        """Summed squares of the columns, over all shards."""
        total = np.full(self.size, float(len(self.x)))
        total[: self.x.shape[1]] = sum(
            np.square(self.block(at)).sum(0) for at in range(0, len(self.x), self.step)
        )
        return np.asarray(over_shards(total)[0])


class SparseRows:
    """Rows in CSR form; columns are not centred."""

    shift: Array | None = None
    exact: bool = True

    def __init__(self, x: csr_matrix, intercept: bool) -> None:
        x.sort_indices()
        self.x, self.intercept = x, intercept
        self.size = x.shape[1] + intercept

    @classmethod
    def of(cls, x: Tensor, intercept: bool) -> SparseRows:
        parts = (x.values(), x.col_indices(), x.crow_indices())
        data, columns, at = (part.detach().cpu().numpy() for part in parts)
        return cls(csr_matrix((data.astype(np.float64), columns, at), x.shape), intercept)

    def score(self, theta: Array) -> Array:
        if not self.intercept:
            return np.asarray(self.x @ theta)
        return np.asarray(self.x @ theta[:-1]) + theta[-1]

    def sums(self, g: Array, h: Array | None) -> tuple[Array, Array | None]:
        gradient = np.asarray(self.x.T @ g)
        if self.intercept:
            gradient = np.append(gradient, g.sum())
        gram = None
        if h is not None:
            gram, p = np.zeros((self.size, self.size)), self.x.shape[1]
            sparse_gram(self.x.indptr, self.x.indices, self.x.data, h, gram)
            gram += np.tril(gram, -1).T
            if self.intercept:
                gram[:p, p] = gram[p, :p] = self.x.T @ h
                gram[p, p] = h.sum()
        found: tuple[Array, Array | None] = over_shards(gradient, gram)
        return found

    def squares(self) -> Array:
        total = np.full(self.size, float(self.x.shape[0]))
        total[: self.x.shape[1]] = np.asarray(self.x.multiply(self.x).sum(0)).ravel()
        return np.asarray(over_shards(total)[0])


class DeviceRows:
    """Rows on an accelerator: float64 products there, small results here."""

    shift: Array | None = None
    exact: bool = True

    def __init__(self, x: Tensor, intercept: bool) -> None:
        x = x.to_dense() if x.layout == torch.sparse_csr else x
        self.x, self.intercept = x.double(), intercept
        self.size = x.shape[1] + intercept

    def _put(self, values: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.x.device)

    def score(self, theta: Array) -> Array:
        w = self._put(theta[:-1] if self.intercept else theta)
        eta: Array = (self.x @ w).cpu().numpy()
        return eta + theta[-1] if self.intercept else eta

    def sums(self, g: Array, h: Array | None) -> tuple[Array, Array | None]:
        left = self._put(g)
        gradient = (left @ self.x).cpu().numpy()
        if self.intercept:
            gradient = np.append(gradient, g.sum())
        gram = None
        if h is not None:
            weight, p = self._put(h), self.x.shape[1]
            gram = np.empty((self.size, self.size))
            gram[:p, :p] = (self.x.T @ (self.x * weight[:, None])).cpu().numpy()
            if self.intercept:
                gram[:p, p] = gram[p, :p] = (weight @ self.x).cpu().numpy()
                gram[p, p] = h.sum()
        found: tuple[Array, Array | None] = over_shards(gradient, gram)
        return found

    def squares(self) -> Array:
        total = np.full(self.size, float(len(self.x)))
        total[: self.x.shape[1]] = self.x.square().sum(0).cpu().numpy()
        return np.asarray(over_shards(total)[0])


def rows_of(x: Tensor, intercept: bool) -> Rows:
    """The kind of rows that fits where x is and how it is stored."""
    if x.device.type != "cpu":
        return DeviceRows(x, intercept)
    if x.layout == torch.sparse_csr:
        return SparseRows.of(x, intercept)
    return DenseRows(x.detach().numpy(), intercept)
