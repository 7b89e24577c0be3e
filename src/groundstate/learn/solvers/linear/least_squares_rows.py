r"""Least squares on the rows themselves, where the Gram matrix will not do.

Collinear or few rows (orthogonal decomposition), more columns than rows with a penalty (the dual
:math:`W = X^\top(XX^\top + \lambda)^{-1}Y`), weights that must not be negative, and sparse rows with many
columns (LSMR, conjugate gradients).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import nnls
from scipy.sparse.linalg import LinearOperator, cg, lsmr
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.thread_policy import for_factors
from groundstate.learn.solvers.linear.least_squares_sums import NEAR, is_sparse, scipy_rows

BLOCK = 2**22  # numbers of a block that is reduced to its triangle


class Rows:
    r"""Rows and targets about their means, :math:`\sqrt{w_i}(x_i - \bar x)`, float64.

    Parameters
    ----------
    x, y, w : ``(n, p)`` dense or CSR, ``(n, m)``, ``(n,)`` or None
    mean_x, mean_y : what is subtracted
    """

    def __init__(self, x: Tensor, y: Tensor, w: Tensor | None, mean_x: Any, mean_y: Any) -> None:
        self.x, self.y, self.w = x, y, w
        device = x.device
        self.mean_x = torch.as_tensor(mean_x, dtype=torch.float64, device=device)
        self.mean_y = torch.as_tensor(mean_y, dtype=torch.float64, device=device)

    def block(self, lo: int = 0, hi: int | None = None) -> tuple[Tensor, Tensor]:
        """Some centred rows, dense."""
        if is_sparse(self.x):
            x = torch.from_numpy(scipy_rows(self.x)[lo:hi].toarray())
        else:
            x = self.x[lo:hi]
        x, y = x.double() - self.mean_x, self.y[lo:hi].double() - self.mean_y
        if self.w is not None:
            root = self.w[lo:hi].double().sqrt()[:, None]
            x, y = x * root, y * root
        return x, y

    def gradient(self, W: Tensor) -> Tensor:
        """Xᵀw(Y − XW) over all rows and shards, ``(p, m)``."""
        out = torch.zeros_like(W)
        step = max(1, BLOCK // max(1, self.x.shape[1]))
        for lo in range(0, len(self.y), step):
            x, y = self.block(lo, lo + step)
            out.addmm_(x.T, torch.addmm(y, x, W, alpha=-1.0))
        return current().sum(out)

    def triangle(self) -> tuple[Tensor, Tensor]:
        """Fewer rows with the same least squares: R of the rows beside Qᵀ of the targets."""
        p = self.x.shape[1]
        step = max(4 * (p + self.y.shape[1]), BLOCK // max(1, p))
        kept: Tensor | None = None
        for lo in range(0, len(self.y), step):
            both = torch.cat(self.block(lo, lo + step), 1)
            both = both if kept is None else torch.cat([kept, both])
            kept = torch.linalg.qr(both, mode="r")[1] if len(both) > both.shape[1] else both
        assert kept is not None
        kept = current().gather(kept)
        return kept[:, :p], kept[:, p:]

    def smallest(self, strength: Tensor) -> tuple[Tensor, Tensor]:
        """The solution of smallest norm ``(p, m)`` and the singular values of the rows."""
        x, y = self.triangle()
        u, s, vt = torch.linalg.svd(x, full_matrices=False)
        size = max(x.shape[1], int(float(current().sum(torch.tensor(float(len(self.y)))))))
        cutoff = float(s.max()) * size * torch.finfo(s.dtype).eps if len(s) else 0.0
        s = torch.where(s > cutoff, s, 0.0)
        safe = torch.where(s > 0, s, 1.0)[:, None]
        gain = torch.where(s[:, None] > 0, safe / (safe * safe + strength), 0.0)  # (r, m)
        return vt.T @ (gain * (u.T @ y)), s

    def dual(self, strength: Tensor) -> Tensor | None:
        """Through the Gram matrix of the rows, ``(n, n)``; None where it has no factor."""
        if self.x.device.type == "cpu" and current().world == 1:
            return self._dual_here(strength)
        x, y = self.block()
        x, y = current().gather(x), current().gather(y)
        gram = x @ x.T
        out = []
        for j, value in enumerate(strength.expand(y.shape[1])):
            factor, failed = torch.linalg.cholesky_ex(
                gram + value * torch.eye(len(x), dtype=x.dtype, device=x.device)
            )
            if int(failed):
                return None
            columns = y if bool((strength == value).all()) else y[:, j : j + 1]
            out.append(x.T @ torch.cholesky_solve(columns, factor))
            if columns is y:
                break
        return torch.cat(out, 1)

    def _dual_here(self, strength: Tensor) -> Tensor | None:
        """The same with NumPy, whose product with its own transpose computes half."""
        x, y, mean, gram = self._products()
        out = []
        for j, value in enumerate(strength.expand(y.shape[1]).tolist()):
            shifted = gram.copy()
            shifted.reshape(-1)[:: len(x) + 1] += value
            columns = y if bool((strength == value).all()) else y[:, j : j + 1]
            with for_factors(len(x)):  # SciPy's threads would wait for those of NumPy
                factor, failed = dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)
                if failed:
                    return None
                dual = dpotrs(factor, columns, lower=1)[0]
            W = x.T @ dual
            out.append(W if mean is None else W - mean[:, None] * dual.sum(0))
            if columns is y:
                break
        return torch.from_numpy(np.hstack(out))

    def _products(self) -> tuple[Any, Any, Any, Any]:
        """Rows, centred targets, what is still to be taken off the rows, and the Gram matrix."""
        if self.w is None and not is_sparse(self.x) and self.x.dtype == torch.float64:
            x, mean = self.x.numpy(), self.mean_x.numpy()
            y = self.y.double().numpy() - self.mean_y.numpy()
            gram, along, size = x @ x.T, x @ mean, float(mean @ mean)
            gram -= along[:, None]
            gram -= along - size
            if len(x) * size <= NEAR * float(gram.trace()):
                return x, y, mean, gram  # zero is near the mean: no digits were lost
        x, y = (v.numpy() for v in self.block())
        return x, y, None, x @ x.T

    def positive(self, strength: Tensor) -> Tensor:
        """No weight below zero: active sets, one output after the other."""
        x, y = (t.cpu().numpy() for t in self.triangle())
        p = x.shape[1]
        out = np.empty((p, y.shape[1]))
        for j, value in enumerate(strength.expand(y.shape[1]).tolist()):
            rows = np.vstack([x, np.sqrt(value) * np.eye(p)]) if value else x
            target = np.r_[y[:, j], np.zeros(p)] if value else y[:, j]
            out[:, j] = nnls(rows, target, maxiter=max(100, 30 * p))[0]
        return torch.from_numpy(out).to(self.mean_x)

    def iterative(self, strength: Tensor, tol: float, max_iter: int | None) -> tuple[Tensor, int]:
        """LSMR without a penalty, conjugate gradients with one; also the most steps taken."""
        rows = scipy_rows(self.x) if is_sparse(self.x) else self.x.double().numpy()
        mean = self.mean_x.numpy()
        n, p = rows.shape
        root = np.ones(n) if self.w is None else np.sqrt(self.w.double().numpy())
        y = root[:, None] * (self.y.double().numpy() - self.mean_y.numpy())

        def forward(v: Any) -> Any:
            return root * (rows @ v.ravel() - mean @ v.ravel())

        def backward(r: Any) -> Any:
            weighted = root * r.ravel()
            return rows.T @ weighted - mean * weighted.sum()

        A = LinearOperator((n, p), forward, backward, dtype=np.float64)
        out, steps = np.empty((p, y.shape[1])), 0
        most = max_iter or 20 * max(100, min(n, p))
        for j, value in enumerate(strength.expand(y.shape[1]).tolist()):
            if value == 0:
                found = lsmr(A, y[:, j], atol=tol, btol=tol, conlim=0.0, maxiter=most)
                out[:, j], used = found[0], int(found[2])
            else:
                count = [0]

                def normal(v: Any, value: float = value) -> Any:
                    return backward(forward(v)) + value * v

                def each(_: Any, count: list[int] = count) -> None:
                    count[0] += 1

                N = LinearOperator((p, p), normal, dtype=np.float64)
                right = backward(y[:, j])
                out[:, j], _ = cg(N, right, rtol=tol, maxiter=most, callback=each)
                used = count[0]
            steps = max(steps, used)
        return torch.from_numpy(out), steps
