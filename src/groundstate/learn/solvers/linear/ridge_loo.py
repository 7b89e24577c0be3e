r"""Ridge regression for many strengths from one eigendecomposition, with exact leave-one-out errors.

With rows about their mean, :math:`A_\alpha = X^\top wX + \alpha` and :math:`h_i = x_i^\top A_\alpha^{-1}x_i
+ 1/\sum w`, taking one row out of the fit turns its residual :math:`e_i` into :math:`e_i/(1 - h_i)`. A row
of weight w is w rows, of which one is taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        if not self.intercept:
            mx, my = (torch.zeros(v.shape[1], dtype=v.dtype, device=v.device) for v in (x, y))
            return x, y, mx, my
        if self.weight is None:
            mx, my = x.mean(0), y.mean(0)
        else:
            total = self.w.sum()
            mx, my = self.w @ x / total, self.w @ y / total
        return x - mx, y - my, mx, my

    @cached_property
    def spectrum(self) -> tuple[Tensor, Tensor, Tensor]:
        """Eigenvalues s, rows along the eigenvectors Z ``(n, r)`` and V ``(p, r)``, of XᵀwX."""
        x = self.centred[0]
        n, p = x.shape
        rows = x if self.weight is None else x * self.w.sqrt()[:, None]
        if p <= n:
            s, V = torch.linalg.eigh(rows.T @ rows)
        else:
            s, U = torch.linalg.eigh(rows @ rows.T)
            kept = s > s[-1].clamp_min(0) * max(n, p) * 2.0**-52
            s, U = s[kept], U[:, kept]
            V = rows.T @ U / s.sqrt()
        s = torch.where(s > s[-1:].clamp_min(0) * max(n, p) * 2.0**-52, s, 0.0)
        return s, x @ V, V

    @cached_property
    def _squares(self) -> tuple[Tensor, Tensor]:
        """Squares of Z ``(n, r)`` and what the intercept adds to a leverage."""
        return self.spectrum[1].square(), 1.0 / self.w.sum()

    @cached_property
    def _cross(self) -> Tensor:
        _, z, _ = self.spectrum
        own = z if self.weight is None else z * self.w[:, None]
        return own.T @ self.centred[1]  # (r, m)

    def _gain(self, alphas: Sequence[float]) -> Tensor:
        """Inverse eigenvalues for every strength, ``(r, A)``."""
        s = self.spectrum[0]
        s = s[:, None] + torch.tensor(alphas, dtype=s.dtype, device=s.device)
        if min(alphas) > 0:
            return s.reciprocal()  # no eigenvalue is below zero
        return torch.where(s > 0, 1.0 / torch.where(s > 0, s, 1.0), 0.0)

    def solution(self, alpha: float) -> tuple[Tensor, Tensor]:
        """Weights ``(p, m)`` and intercepts ``(m,)``."""
        W = self.spectrum[2] @ (self._gain([alpha]) * self._cross)
        return W, self.centred[3] - self.centred[2] @ W

    def solutions(self, alphas: Sequence[float]) -> tuple[Tensor, Tensor]:
        """The same for many strengths, ``(A, p, m)`` and ``(A, m)``."""
        W = self.spectrum[2] @ (self._gain(alphas).T[:, :, None] * self._cross)
        return W, self.centred[3] - self.centred[2] @ W

    def leverage(self, alpha: float) -> Tensor:
        """h of a row of weight one, ``(n,)``."""
        return self._leverage(self._gain([alpha]))[:, 0]

    def _leverage(self, gain: Tensor) -> Tensor:
        squares, even = self._squares
        h = squares @ gain
        return h + even if self.intercept else h

    def left_out(self, alpha: float) -> Tensor:
        """Residuals of every row when (one of) it is not in the fit, ``(n, m)``."""
        return self.each_left_out([alpha])[:, :, 0]

    def each_left_out(self, alphas: Sequence[float]) -> Tensor:
        """The same for many strengths from one product, ``(n, m, A)``."""
        z, y = self.spectrum[1], self.centred[1]
        gain, (r, m) = self._gain(alphas), self._cross.shape
        fitted = z @ (self._cross[:, :, None] * gain[:, None, :]).reshape(r, m * len(alphas))
        out = self._leverage(gain)  # (n, A)
        if self.weight is not None:
            out = self.w.clamp_max(1.0)[:, None] * out
        left = y[:, :, None] - fitted.reshape(len(y), m, len(alphas))
        return left / (1 - out).clamp_min(1e-12)[:, None, :]
