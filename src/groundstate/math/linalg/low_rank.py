r"""Low rank plus diagonal: a matrix solved by its small side."""

from __future__ import annotations

import torch
from torch import Tensor


class LowRank:
    r""":math:`P = LL^\top + \operatorname{diag}(D)`, solved in :math:`O(nk)` by its small side.

    Parameters
    ----------
    L : ``(n, k)``
    D : ``(n,)``, positive

    Attributes
    ----------
    log_det : :math:`\log|P|`

    Examples
    --------
    >>> P = LowRank(torch.ones(3, 1).double(), torch.ones(3).double())
    >>> P.solve(torch.ones(3, 1).double()).flatten().tolist(), round(float(P.log_det.exp()), 6)
    ([0.25, 0.25, 0.25], 4.0)
    """

    def __init__(self, L: Tensor, D: Tensor) -> None:
        self.L, self.D = L, D
        self.scaled = L / D[:, None]
        eye = torch.eye(L.shape[1], dtype=L.dtype, device=L.device)
        self.small = torch.linalg.cholesky(eye + L.T @ self.scaled)
        self.log_det = 2 * self.small.diagonal().log().sum() + D.log().sum()

    def solve(self, r: Tensor) -> Tensor:
        r""":math:`P^{-1}r` for columns ``(n, m)``."""
        inner = torch.cholesky_solve(self.scaled.T @ r, self.small)
        return r / self.D[:, None] - self.scaled @ inner

    def root(self) -> Tensor:
        r"""W with :math:`P^{-1} = \operatorname{diag}(D)^{-1} - WW^\top`, ``(n, k)``."""
        return torch.linalg.solve_triangular(self.small, self.scaled.T, upper=False).T

    def draw(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Columns with covariance P, ``(rows, n)``."""
        like = {"dtype": self.L.dtype, "device": self.L.device, "generator": generator}
        first = torch.randn(self.L.shape[1], n, **like)  # type: ignore[call-overload]
        second = torch.randn(len(self.D), n, **like)  # type: ignore[call-overload]
        found: Tensor = self.L @ first + self.D.sqrt()[:, None] * second
        return found


__all__ = ["LowRank"]
