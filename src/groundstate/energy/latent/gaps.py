r"""Gaussians of rows with gaps, all patterns of gaps at once.

With o the observed and m the missing columns of a pattern, :math:`A = \Sigma_{oo} \oplus I_m` is one
matrix ``(d, d)`` for each component, so that factors of all patterns come from one batched call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

NUMBERS = 2**21  # of the matrices that are held at once
MANY = 32  # rows of a pattern from which it has a product of its own


@dataclass(frozen=True)
class Gaps:
    """Some patterns of gaps and the rows that have them.

    Attributes
    ----------
    rows : numbers of the rows ``(n,)``, those of one pattern together
    which : the pattern of each of them ``(n,)``
    sizes : rows of each pattern
    free : missing columns of each pattern ``(p, d)``
    """

    rows: Tensor
    which: Tensor
    sizes: list[int]
    free: Tensor

    def factor(self, cov: Tensor) -> Tensor:
        """Cholesky factors of A, ``(p, k, d, d)``, of covariances ``(k, d, d)``."""
        o = (~self.free).to(cov)
        both = o[:, None, :, None] * o[:, None, None, :]
        return torch.linalg.cholesky(cov * both + torch.diag_embed(1 - o)[:, None])

    def map(self, M: Tensor, diff: Tensor) -> Tensor:
        """Mv with the matrix ``(p, k, d, d)`` of a row's pattern, v ``(n, k, d)``."""
        if len(self.rows) >= MANY * len(self.sizes):
            parts = zip(M, diff.split(self.sizes), strict=True)
            return torch.cat([torch.einsum("kij,nkj->nki", m, v) for m, v in parts])
        step = max(1, NUMBERS // M[0].numel())
        return torch.cat([
            (M[which] @ v[..., None])[..., 0]
            for which, v in zip(self.which.split(step), diff.split(step), strict=True)
        ])  # fmt: skip


def gaps_of(hidden: Tensor, k: int) -> Iterator[Gaps]:
    """All patterns of rows with gaps ``(n, d)``, as many at once as memory allows for k components."""
    kinds, which = torch.unique(hidden, dim=0, return_inverse=True)
    order = which.argsort(stable=True)
    counts = which.bincount(minlength=len(kinds))
    step = max(1, NUMBERS // (k * hidden.shape[1] ** 2))
    at = 0
    for first in range(0, len(kinds), step):
        sizes = counts[first : first + step].tolist()
        rows = order[at : at + sum(sizes)]
        at += sum(sizes)
        yield Gaps(rows, which[rows] - first, sizes, kinds[first : first + step])
