r"""Distances to all centroids by plain products, on a device and for sparse rows.

:math:`\tfrac12\|\mu_z\|^2 - \mu_z^\top x` of a tile of rows with the centroids of all runs is one product;
sums per centroid are a product with indicators, whose order of summation is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

BLOCK = 2**26  # numbers of one table of distances


def as_csr(x: Tensor) -> Any:
    """A CSR tensor as a SciPy matrix, memory shared."""
    parts = (x.values(), x.col_indices(), x.crow_indices())
    return csr_matrix(tuple(part.numpy() for part in parts), shape=tuple(x.shape))


class Table:
    """Rows that are compared with all centroids every time.

    Parameters
    ----------
    x : Tensor, ``(N, d)``, dense or CSR
    weight : Tensor, ``(N,)`` float64, or None
    """

    def __init__(self, x: Tensor, weight: Tensor | None) -> None:
        self.x, self.weight = x.detach(), weight
        self.csr = as_csr(self.x) if x.layout == torch.sparse_csr else None

    def _tiles(self, columns: int) -> Iterator[tuple[Any, Tensor | None]]:
        """Rows, tensors or CSR, with their weights."""
        n = self.x.shape[0]
        step = max(1, BLOCK // max(1, columns))
        rows = self.x if self.csr is None else self.csr
        for at in range(0, n, step):
            w = None if self.weight is None else self.weight[at : at + step]
            yield (rows if step >= n else rows[at : at + step]), w

    def moments(self, origin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weight, sum and sum of squares ``(d,)`` about ``origin``; sparse rows about zero."""
        if self.csr is not None:
            each = np.ones(self.csr.shape[0]) if self.weight is None else self.weight.numpy()
            first = torch.from_numpy(np.asarray(self.csr.T @ each, np.float64))
            squared = np.asarray(self.csr.multiply(self.csr).T @ each, np.float64)
            return torch.tensor(each.sum()), first, torch.from_numpy(squared)
        weight, first, square = origin.new_zeros(()), torch.zeros_like(origin), 0.0 * origin
        for part, w in self._tiles(3 * self.x.shape[1]):
            rows = part.double() - origin
            scaled = rows if w is None else rows * w[:, None]
            weight = weight + (float(len(rows)) if w is None else w.sum())
            first, square = first + scaled.sum(0), square + (scaled * rows).sum(0)
        return weight, first, square

    def _scores(self, part: Any, origin: Tensor, mu: Tensor, half: Tensor) -> tuple[Any, Tensor]:
        """The rows about the origin, and ½‖μ‖² − μᵀx, ``(rows, k)``."""
        if self.csr is not None:
            return part, half - torch.from_numpy(np.asarray(part @ mu.numpy().T))
        rows = part - origin
        return rows, torch.addmm(half, rows, mu.T, alpha=-1.0)

    def assign(
        self, centroids: Sequence[Tensor], origin: Tensor
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """For the centroids of each run: labels ``(N,)``, weights ``(k,)`` and sums ``(k, d)``."""
        sizes = [len(mu) for mu in centroids]
        mu = torch.cat(list(centroids)).to(self.x.dtype)
        half = 0.5 * mu.square().sum(1)
        labels: list[list[Tensor]] = [[] for _ in sizes]
        n = [m.new_zeros(len(m)) for m in centroids]
        sums = [torch.zeros_like(m) for m in centroids]
        numbers = torch.arange(max(sizes), device=self.x.device)[:, None]
        for part, w in self._tiles(max(len(mu), self.x.shape[1])):
            rows, scores = self._scores(part, origin, mu, half)
            wide = None if self.csr is not None else rows.double()
            for r, own in enumerate(scores.split(sizes, 1)):
                found = own.argmin(1)
                labels[r].append(found.to(torch.int32))
                if wide is None:
                    one, two = _sparse_sums(rows, w, found, sizes[r])
                else:
                    hot = (found == numbers[: sizes[r]]).double()  # (k, rows)
                    hot = hot if w is None else hot * w
                    one, two = hot.sum(1), hot @ wide
                n[r] += one
                sums[r] += two
        return [(torch.cat(one), n[r], sums[r]) for r, one in enumerate(labels)]

    def distances(self, mu: Tensor, label: Tensor, origin: Tensor) -> Tensor:
        """Squared distances of the rows to the centroids of their labels, ``(N,)`` float64."""
        out, at = [], 0
        for part, _ in self._tiles(3 * self.x.shape[1]):
            rows = part.shape[0]
            z = label[at : at + rows].long()
            if self.csr is None:
                out.append((part.double() - origin.double() - mu[z]).square().sum(1))
            else:
                wide = part.astype(np.float64)
                norm = torch.from_numpy(np.asarray(wide.multiply(wide).sum(1)).reshape(-1))
                inner = torch.from_numpy(np.asarray(wide @ mu.numpy().T))
                own = inner.gather(1, z[:, None])[:, 0]
                out.append((norm - 2 * own + mu.square().sum(1)[z]).clamp_min(0.0))
            at += rows
        return torch.cat(out)

    def nearest(self, mu: Tensor) -> tuple[Tensor, float]:
        """Labels ``(N,)`` int32 and the weighted sum of squared distances."""
        dense = self.csr is None
        origin = mu.double().mean(0).to(self.x.dtype) if dense else torch.zeros_like(mu[0])
        centred = mu.double() - origin.double()
        near = centred.to(self.x.dtype)
        half, labels = 0.5 * near.square().sum(1), []
        for part, _ in self._tiles(max(len(mu), self.x.shape[1])):
            labels.append(self._scores(part, origin, near, half)[1].argmin(1).to(torch.int32))
        label = torch.cat(labels)
        d2 = self.distances(centred, label, origin)
        return label, float(d2.sum() if self.weight is None else d2 @ self.weight)


def _sparse_sums(rows: Any, w: Tensor | None, label: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Weights ``(k,)`` and sums ``(k, d)`` of CSR rows by label."""
    count = rows.shape[0]
    weight = np.ones(count) if w is None else w.numpy()
    hot = csr_matrix((weight, (label.numpy(), np.arange(count))), shape=(k, count))
    sums = (hot @ rows.astype(np.float64)).toarray()
    return torch.from_numpy(np.asarray(hot.sum(1)).reshape(-1)), torch.from_numpy(sums)
