r"""Ridge regression for many strengths from one eigendecomposition, with exact leave-one-out errors.

With rows about their mean, :math:`A_\alpha = X^\top wX + \alpha` and :math:`h_i = x_i^\top A_\alpha^{-1}x_i
+ 1/\sum w`, taking one row out of the fit turns its residual :math:`e_i` into :math:`e_i/(1 - h_i)`. A row
of weight w is w rows, of which one is taken out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class RidgePath:
    """All ridge solutions of some rows.

    Parameters
    ----------
    X, Y : ``(n, p)``, ``(n, m)``
    weight : ``(n,)`` or None
    intercept : whether there is one

    Examples
    --------
    >>> x, y = torch.arange(4.0)[:, None], torch.tensor([[1.0], [2.0], [2.0], [4.0]])
    >>> path = RidgePath(x, y, None, True)
    >>> round(float(path.left_out(1.0).square().mean()), 6)
    0.924644
    """

    X: Tensor
    Y: Tensor
    weight: Tensor | None
    intercept: bool

    @cached_property
    def w(self) -> Tensor:
        ones = torch.ones(len(self.X), dtype=torch.float64, device=self.X.device)
        return ones if self.weight is None else self.weight.double()

    @cached_property
    def centred(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows and targets about their weighted means, and the means."""
        x, y = self.X.double(), self.Y.double()
        total = self.w.sum()
        mx, my = self.w @ x / total, self.w @ y / total
        if not self.intercept:
            mx, my = torch.zeros_like(mx), torch.zeros_like(my)
        return x - mx, y - my, mx, my

    @cached_property
    def spectrum(self) -> tuple[Tensor, Tensor, Tensor]:
        """Eigenvalues s, rows along the eigenvectors Z ``(n, r)`` and V ``(p, r)``, of XᵀwX."""
        x = self.centred[0]
        n, p = x.shape
        root = self.w.sqrt()[:, None]
        if p <= n:
            s, V = torch.linalg.eigh((x * root).T @ (x * root))
        else:
            s, U = torch.linalg.eigh((x * root) @ (x * root).T)
            kept = s > s[-1].clamp_min(0) * max(n, p) * 2.0**-52
            s, U = s[kept], U[:, kept]
            V = (x * root).T @ U / s.sqrt()
        s = torch.where(s > s[-1:].clamp_min(0) * max(n, p) * 2.0**-52, s, 0.0)
        return s, x @ V, V

    @cached_property
    def _squares(self) -> tuple[Tensor, Tensor]:
        """Squares of Z ``(n, r)`` and what the intercept adds to a leverage."""
        return self.spectrum[1].square(), 1.0 / self.w.sum()

    @cached_property
    def _cross(self) -> Tensor:
        _, z, _ = self.spectrum
        return (z * self.w[:, None]).T @ self.centred[1]  # (r, m)

    def _gain(self, alpha: float) -> Tensor:
        s = self.spectrum[0] + alpha
        if alpha > 0:
            return 1.0 / s  # no eigenvalue is below zero
        return torch.where(s > 0, 1.0 / torch.where(s > 0, s, 1.0), 0.0)

    def solution(self, alpha: float) -> tuple[Tensor, Tensor]:
        """Weights ``(p, m)`` and intercepts ``(m,)``."""
        W = self.spectrum[2] @ (self._gain(alpha)[:, None] * self._cross)
        return W, self.centred[3] - self.centred[2] @ W

    def leverage(self, alpha: float) -> Tensor:
        """h of a row of weight one, ``(n,)``."""
        return self._leverage(self._gain(alpha))

    def _leverage(self, gain: Tensor) -> Tensor:
        squares, even = self._squares
        h = squares @ gain
        return h + even if self.intercept else h

    def left_out(self, alpha: float) -> Tensor:
        """Residuals of every row when (one of) it is not in the fit, ``(n, m)``."""
        z, y = self.spectrum[1], self.centred[1]
        gain = self._gain(alpha)
        residual = y - z @ (gain[:, None] * self._cross)
        out = self._leverage(gain)
        if self.weight is not None:
            out = self.w.clamp_max(1.0) * out
        return residual / (1 - out).clamp_min(1e-12)[:, None]


__all__ = ["RidgePath"]
