r"""A covariance too large to store: products with it by tiles, solutions by conjugate gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.pivots import explained_by, pivoted_cholesky
from groundstate.math.linalg.conjugate_gradients import Solved, conjugate
from groundstate.math.linalg.low_rank import LowRank

TILE = 2**24  # kernel values at once
SMALL = 1e-2  # share of the noise: variance below it is not worth a column of the preconditioner


class TiledCovariance:
    r""":math:`K = k(X, X) + \operatorname{diag}(s)` without the matrix.

    Parameters
    ----------
    kernel : covariance; its own noise must be in ``spread``
    x : ``(n, d)``
    spread : s, ``(n,)``, positive
    theta : free parameters of the kernel
    single : compute tiles in float32; solutions are refined by float64 residuals
    rank : columns of the preconditioner
    pivots : its rows, where they are chosen already, so that it changes smoothly with θ

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> x = torch.linspace(0, 3, 40).double()[:, None]
    >>> K = TiledCovariance(RBF(1.0), x, torch.full((40,), 0.1).double())
    >>> exact = torch.linalg.solve(RBF(1.0)(x) + 0.1 * torch.eye(40), x)
    >>> bool((K.solve(x).x - exact).abs().max() < 1e-5)
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        x: Tensor,
        spread: Tensor,
        theta: Tensor | None = None,
        *,
        single: bool = False,
        rank: int = 100,
        pivots: Tensor | None = None,
    ) -> None:
        self.kernel, self.x, self.spread, self.theta = kernel, x, spread, theta
        self.single, self.rank, self.pivots = single, rank, pivots
        self.rows = max(1, TILE // max(1, len(x)))
        self._one: dict[bool, Tensor] = {}  # by precision: the only tile of a small table

    def tiles(self, theta: Tensor | None, single: bool) -> Iterator[tuple[slice, Tensor]]:
        """Rows of the kernel's matrix, a slice at a time."""
        x = self.x.float() if single else self.x
        theta = theta.to(x.dtype) if theta is not None else None
        for start in range(0, len(x), self.rows):
            at = slice(start, start + self.rows)
            yield at, self.kernel.of(Geometry(x[at], x), theta)

    def _fixed(self, single: bool) -> Iterator[tuple[slice, Tensor]]:
        """Tiles at the covariance's own θ; where there is only one, it is kept."""
        if self.rows < len(self.x):
            yield from self.tiles(self.theta, single)
            return
        if single not in self._one:
            self._one[single] = next(tile for _, tile in self.tiles(self.theta, single))
        yield slice(None), self._one[single]

    def __matmul__(self, v: Tensor) -> Tensor:
        return self._product(v, self.single)

    def _product(self, v: Tensor, single: bool) -> Tensor:
        out = self.spread[:, None] * v
        with torch.no_grad():
            given = v.float() if single else v
            for at, tile in self._fixed(single):
                out[at] += (tile @ given).to(out.dtype)
        return out

    def slope(self, u: Tensor, v: Tensor, theta: Tensor) -> Tensor:
        r""":math:`\sum_r \partial_\theta\, u_r^\top k_\theta(X, X) v_r`, tile by tile."""
        at_theta = theta.detach().clone().requires_grad_()
        total = torch.zeros_like(at_theta)
        for at, tile in self.tiles(at_theta, self.single):
            weight = (u[at] @ v.T).to(tile.dtype)
            if tile.requires_grad:
                total += torch.autograd.grad(tile, at_theta, weight)[0]
        return total

    @cached_property
    def preconditioner(self) -> LowRank:
        """The part of K that a few rows explain, and what is left on the diagonal."""
        if self.pivots is None:
            most = self.kernel.diagonal(self.x, self.theta, noise=False).max().clamp(min=1e-30)
            tol = max(1e-10, SMALL * float(self.spread.min() / most))
            L, _ = pivoted_cholesky(self.kernel, self.x, self.rank, self.theta, tol)
        else:
            L = explained_by(self.kernel, self.x, self.x[self.pivots], self.theta)
        own = self.kernel.diagonal(self.x, self.theta, noise=False).detach()
        left = (own - L.square().sum(1)).clamp(min=0)
        return LowRank(L, self.spread + left.mean() + 1e-10 * own.mean())

    def solve(self, b: Tensor, tol: float = 1e-8, max_iter: int = 1000) -> Solved:
        r""":math:`K^{-1}b` for columns ``(n, r)``."""
        P = self.preconditioner
        if not self.single:
            return conjugate(self, b, P.solve, tol=tol, max_iter=max_iter)
        rough = max(tol, 1e-4)
        first = found = conjugate(self, b, P.solve, tol=rough, max_iter=max_iter)
        x, size = found.x, b.norm(dim=0).clamp(min=torch.finfo(b.dtype).tiny)
        error = found.error
        for _ in range(8):  # each round adds the digits of a float32 solution
            residual = b - self._product(x, False)
            error = residual.norm(dim=0) / size
            if float(error.max()) <= tol:
                break
            x = x + conjugate(self, residual, P.solve, tol=rough, max_iter=max_iter).x
        return Solved(x, first.steps, error, first.diagonal, first.off)
