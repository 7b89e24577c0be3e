r"""The collapsed bound of a Gaussian process through a few inducing points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy
from groundstate.energy.kernels.gaussian_process.inducing import inducing_factor
from groundstate.math.kernels import Geometry

F64 = NDArray[np.float64]
TILE = 2**22  # kernel values at once


@dataclass
class BoundPoint:
    r"""The bound at θ: its value, gradient, and the best :math:`q(v) = N(\mu, RR^\top)`."""

    value: float
    gradient: F64
    mu: Tensor
    root: Tensor


class CollapsedBound:
    r"""An upper bound of the energy of the observations, from inducing points u, as a function of θ.

    With :math:`A = L^{-1}K_{uf}S^{-1/2}`, :math:`B = I + AA^\top`, :math:`b = AS^{-1/2}y` and S the
    noise,

    .. math::
        F(\theta) = \tfrac12\Bigl[\log|2\pi S| + \log|B| + y^\top S^{-1}y - b^\top B^{-1}b
        + \operatorname{tr}S^{-1}(K_{ff} - K_{fu}K_{uu}^{-1}K_{uf})\Bigr]
        \;\ge\; -\log p(y \mid \theta) .

    Sums over rows are by tiles and over shards; the rows by points matrix is never stored.

    Parameters
    ----------
    field : the observed inputs
    y : ``(m, n)``
    u : inducing points ``(k, d)``

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> x = torch.linspace(0, 3, 20).double()[:, None]
    >>> f, y = FieldEnergy(x, RBF(1.0), 0.1), torch.sin(x.T)
    >>> exact = f(y=y).item()
    >>> few, all_of_them = (CollapsedBound(f, y, u)(np.zeros(1))[0] for u in (x[::7], x))
    >>> bool(few > exact), bool(abs(all_of_them - exact) < 1e-5)
    (True, True)
    """

    def __init__(self, field: FieldEnergy, y: Tensor, u: Tensor) -> None:
        self.field, self.y, self.u = field, y.T.contiguous(), u
        self.reduce = current()
        self.values: list[float] = []

    def __call__(self, theta: F64) -> tuple[float, F64]:
        point = self.at(theta)
        self.values.append(point.value)
        return point.value, point.gradient

    def _tiles(
        self, theta: Tensor, L: Tensor, root: Tensor
    ) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """Rows, their kernel values with u ``(k, b)``, A ``(k, b)`` and y over its noise ``(b, m)``."""
        x, step = self.field.x, max(1, TILE // len(self.u))
        for start in range(0, len(x), step):
            at = slice(start, start + step)
            K = self.field.kernel.of(Geometry(self.u, x[at]), theta)
            A = torch.linalg.solve_triangular(L, K.detach(), upper=False) / root[at]
            yield at, K, A, self.y[at] / root[at][:, None]

    def at(self, theta: F64, slope: bool = True) -> BoundPoint:
        """The bound at θ."""
        field, m = self.field, self.y.shape[1]
        t = torch.as_tensor(theta).to(field.theta).requires_grad_(slope)
        with torch.set_grad_enabled(slope):
            L_graph = inducing_factor(field.kernel, self.u, t)
            spread_graph, repeats_graph = field.spread(t), field.repeats(t)
            own_graph = field.kernel.diagonal(field.x, t, noise=False)
        L, s, own = L_graph.detach(), spread_graph.detach(), own_graph.detach()
        root, k = s.sqrt(), len(self.u)
        with torch.no_grad():
            B = torch.zeros(k, k, dtype=L.dtype, device=L.device)
            b = torch.zeros(k, m, dtype=L.dtype, device=L.device)
            for _, _, A, y in self._tiles(t.detach(), L, root):
                B += A @ A.T
                b += A @ y
            rows = (
                m * ((2 * math.pi * s).log() + own / s).sum() + (self.y.square().sum(1) / s).sum()
            )
            total = rows + 2 * m * repeats_graph.detach()
            flat = self.reduce.sum(torch.cat([B.reshape(-1), b.reshape(-1), total.reshape(1)]))
            B, b = flat[: k * k].reshape(k, k), flat[k * k : -1].reshape(k, m)
            trace = B.trace()
            B.diagonal().add_(1.0)
            LB = torch.linalg.cholesky(B)
            mu = torch.cholesky_solve(b, LB)
            eye = torch.eye(k, dtype=L.dtype, device=L.device)
            half = torch.linalg.solve_triangular(LB, eye, upper=False)
            log_det = 2 * LB.diagonal().log().sum()
            value = 0.5 * float(flat[-1] + m * (log_det - trace) - (b * mu).sum())
        if not slope or not len(t):
            return BoundPoint(value, np.zeros(len(t)), mu, half.T)
        G = 0.5 * (m * (half.T @ half - eye) + mu @ mu.T)  # ∂F/∂B
        dL, gradient = torch.zeros_like(L), torch.zeros_like(t)
        ds = 0.5 * (m / s - (self.y.square().sum(1) + m * own) / s.square())
        for at, K, A, y in self._tiles(t, L, root):
            dA = 2 * (G @ A) - mu @ y.T
            ds[at] += 0.5 * ((y * (A.T @ mu)).sum(1) - (dA * A).sum(0)) / s[at]
            dK = torch.linalg.solve_triangular(L.T, dA / root[at], upper=True)
            dL -= dK @ (A * root[at]).T
            if K.requires_grad:
                gradient += torch.autograd.grad(K, t, dK)[0]
        pairs = [
            (spread_graph, ds), (own_graph, 0.5 * m / s), (repeats_graph, s.new_tensor(m)),
        ]  # fmt: skip
        gradient = self.reduce.sum(gradient + _backward(pairs, t))
        gradient = gradient + _backward([(L_graph, self.reduce.sum(dL.tril()))], t)
        return BoundPoint(value, gradient.double().cpu().numpy(), mu, half.T)


def _backward(pairs: list[tuple[Tensor, Tensor]], t: Tensor) -> Tensor:
    """The gradient of a sum of products in θ, zero where none depends on it."""
    live = [(output, weight) for output, weight in pairs if output.requires_grad]
    if not live:
        return torch.zeros_like(t)
    outputs, weights = zip(*live, strict=True)
    (g,) = torch.autograd.grad(outputs, [t], weights, allow_unused=True)
    return torch.zeros_like(t) if g is None else g
