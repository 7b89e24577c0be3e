r"""A Gaussian process given so many observations that their covariance cannot be stored."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy, ProcessEnergy
from groundstate.energy.registering import registered
from groundstate.math.kernels import RBF, Geometry, Kernel, White
from groundstate.math.kernels.covariance import TiledCovariance

TILE = 2**24  # kernel values of one piece of new rows
COLUMNS = 256  # right sides solved together


def _posterior() -> IterativeProcessEnergy:
    x = torch.tensor([[0.0], [1.0], [2.5]])
    # numbers that float32 and float64 both hold
    energy = IterativeProcessEnergy(1, 1, RBF(1.0) + White(1.0), tol=1e-13)
    energy.observe(FieldEnergy(x, energy.kernel, 2.0**-10), torch.tensor([[0.0, 1.0, -1.0]]))
    return energy


@registered(r"e(x, y) = -\log N(y;\, m(x),\, v(x) + \alpha),\; K^{-1}k_x \text{ by CG}", _posterior)
class IterativeProcessEnergy(ProcessEnergy):
    r"""The distribution of a new observation as in `ProcessEnergy`,
    :math:`e(x, y) = -\log N(y;\, m(x),\, v(x) + \alpha)`, where :math:`K^{-1}y` and
    :math:`K^{-1}k_x` come from conjugate gradients and K is never stored.

    Gradients in θ go through the dense matrix, for small tables.

    Parameters
    ----------
    d, m, kernel, n, noise : as in `ProcessEnergy`
    tol : relative residual of the solutions
    rank : columns of the preconditioner
    single : compute kernel tiles in float32, and refine

    Attributes
    ----------
    total : buffer, ``(n,)``, noise on the diagonal of K, with the kernel's own

    Examples
    --------
    >>> e = IterativeProcessEnergy(1, 1, RBF(1.0), noise=0.1)
    >>> x = torch.tensor([[0.0], [1.0]]).double()
    >>> e.observe(FieldEnergy(x, RBF(1.0), 0.1), torch.tensor([[0.0, 1.0]]).double())
    >>> with torch.no_grad():
    ...     m, v = e.double().predict(torch.tensor([[0.5]]).double())
    >>> round(m.item(), 6)
    0.517129
    """

    total: Tensor

    def __init__(
        self,
        d: int,
        m: int,
        kernel: Kernel,
        n: int = 0,
        noise: float = 0.0,
        tol: float = 1e-6,
        rank: int = 100,
        single: bool = False,
    ) -> None:
        super().__init__(d, m, kernel, n, noise)
        self.tol, self.rank, self.single = tol, rank, single
        self.register_buffer("total", torch.ones(n))

    def config(self) -> dict[str, Any]:
        return {**super().config(), "tol": self.tol, "rank": self.rank, "single": self.single}

    @torch.no_grad()
    def observe(self, field: FieldEnergy, y: Tensor, factor: Tensor | None = None) -> None:
        """Condition on outputs ``(m, n)`` at the inputs of a field; a factor is not needed."""
        self.kernel = field.learned_kernel
        self.theta = nn.Parameter(field.theta.detach().clone())
        self.x, self.y = field.x, y.T.contiguous()
        self.spread = field.extra(self.theta).clone()
        self.total = field.spread(self.theta)
        self.solved = self.theta.detach().clone()
        self.a = self.covariance().solve(self.y, self.tol).x

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        before = self.a.dtype
        super()._apply(fn, recurse)
        wider = self.a.dtype == torch.float64 and before == torch.float32
        if wider and len(self.x) and self.a.device.type != "meta":
            with torch.no_grad():  # as accurate as the numbers are now
                self.a = self.covariance().solve(self.y, self.tol).x
        return self

    def covariance(self) -> TiledCovariance:
        """K, which multiplies and solves by tiles."""
        return TiledCovariance(
            self.kernel, self.x, self.total, self.theta.detach(), rank=self.rank,
            single=self.single,
        )  # fmt: skip

    def _stored(self) -> bool:
        """Whether the dense matrix is asked for: gradients in θ, or another θ."""
        learning = torch.is_grad_enabled() and self.theta.requires_grad and self.theta.numel() > 0
        return learning or not len(self.x) or not torch.equal(self.solved, self.theta)

    def _known(self, K: Tensor) -> Tensor:
        r""":math:`K^{-1}k_x` for rows ``(B, n)``, ``(n, B)``."""
        covariance = self.covariance()
        pieces = torch.split(K, COLUMNS)
        return torch.cat([covariance.solve(piece.mT, self.tol).x for piece in pieces], 1)

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """m(x) and v(x), both ``(B, m)``."""
        if self._stored():
            return super().predict(x)
        means, variances = [], []
        for piece in torch.split(x, max(1, TILE // len(self.x))):
            K = self.kernel.of(Geometry(piece, self.x), self.theta)  # (B, n)
            own = self.kernel.diagonal(piece, self.theta)
            means.append(K @ self.a)
            variances.append((own - (K * self._known(K).mT).sum(1)).clamp(min=0.0))
        mean, v = torch.cat(means), torch.cat(variances)
        return mean * self.scale + self.shift, v[:, None] * self.scale.square()

    def mean(self, x: Tensor) -> Tensor:
        """m(x), ``(B, m)``, a piece of the rows at a time."""
        if self._stored():
            return super().mean(x)
        pieces = torch.split(x, max(1, TILE // len(self.x)))
        return torch.cat([super(IterativeProcessEnergy, self).mean(piece) for piece in pieces])

    def joint(self, x: Tensor) -> Tensor:
        """Covariance of the function at these inputs, before scaling, ``(B, B)``."""
        if self._stored():
            return super().joint(x)
        K = self.kernel.of(Geometry(x, self.x), self.theta)
        known = K @ self._known(K)
        return self.prior(x) - 0.5 * (known + known.mT)

    @torch.no_grad()
    def functions(self, x: Tensor, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws of the function at these inputs, ``(n, B, m)``, from their joint distribution."""
        return super(ProcessEnergy, self).functions(x, n, generator)
