r"""A metric that is small where data are: one over their local variance."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor
from groundstate.math.distances.riemannian import RiemannianMetric

NEIGHBORS = 10
TILE = 2**22


class LocalMetric(RiemannianMetric):
    r"""One over the local variance of data,

    .. math::
        M_{jj}(x) = \frac1{\sum_nw_n(x)\,(x_{nj} - x_j)^2 + \rho}, \qquad
        w_n(x) = e^{-\|x_n - x\|^2/2\sigma^2} .

    Weights are not normalised, so that M is small where data are and :math:`I/\rho` far from them:
    shortest curves follow the data. With ``kind="full"`` M is the inverse of the whole local
    covariance, whose largest direction is the cheapest.

    Parameters
    ----------
    X : ``(n, d)``
    sigma : width σ, or "auto": the median distance to the 10th neighbour
    rho : ρ, the least variance
    weights : ``(n,)``, how often each row counts
    kind : "diagonal" or "full"

    Attributes
    ----------
    sigma : σ

    Examples
    --------
    >>> metric = LocalMetric([[0.0, 0.0], [1.0, 0.0]], sigma=1.0, rho=0.5)
    >>> metric.tensor([50.0, 0.0]).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(
        self,
        X: Any,
        sigma: float | Literal["auto"] = "auto",
        rho: float = 1e-2,
        *,
        weights: Any = None,
        kind: Literal["diagonal", "full"] = "diagonal",
    ) -> None:
        x = as_tensor(X, "X")
        if x.ndim != 2 or not x.numel():
            raise ShapeError(f"X needs rows (n, d), at least one, got shape {tuple(x.shape)}")
        if kind not in ("diagonal", "full"):
            raise ValueError(f"kind must be 'diagonal' or 'full', got {kind!r}")
        if not (rho > 0 and math.isfinite(rho)):
            raise ValueError(f"rho is the least variance and must be positive, got {rho}")
        w = x.new_ones(len(x)) if weights is None else as_tensor(weights, "weights", x).to(x)
        if w.shape != (len(x),) or bool((w < 0).any()) or not bool(w.sum() > 0):
            raise ShapeError(
                f"weights needs one number from 0 up for each of the {len(x)} rows, and not all 0"
            )
        keep = w > 0
        self.rows: Tensor = x[keep]
        self.weights, self.rho, self.kind = w[keep], float(rho), kind
        self.sigma = neighbor_width(self.rows, self.weights) if sigma == "auto" else float(sigma)
        if not (self.sigma > 0 and math.isfinite(self.sigma)):
            raise ValueError(
                f"sigma must be positive, got {self.sigma}; with sigma='auto' most rows have "
                f"{NEIGHBORS} twins: give a number"
            )
        self.centre = self.rows.mean(0)
        self.moved = self.rows - self.centre
        self._sorted: tuple[Any, ...] | None = None

    def to(self, like: Tensor) -> LocalMetric:
        """The same metric for tensors of another device or precision."""
        if like.device == self.rows.device and like.dtype == self.rows.dtype:
            return self
        return LocalMetric(
            self.rows.to(like), self.sigma, self.rho, weights=self.weights.to(like),
            kind=self.kind,
        )  # fmt: skip

    def variance(self, x: Tensor) -> Tensor:
        """The local variances and ρ, ``(q, d)``."""
        own = self.to(x)
        found: Tensor = _LocalVariance.apply(x - own.centre, own.moved, own.weights, own.sigma)
        return found + self.rho

    def covariance(self, x: Tensor) -> Tensor:
        """The local covariance and ρI, ``(q, d, d)``."""
        own = self.to(x)
        out = []
        for part in x.split(max(1, TILE // (len(own.rows) * x.shape[1]))):
            gap = own.rows - part[:, None]  # (q, n, d)
            w = (gap.square().sum(-1) / (-2 * own.sigma**2)).exp() * own.weights
            out.append(gap.mT @ (gap * w[..., None]))
        eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        return torch.cat(out) + self.rho * eye

    def matrix(self, x: Tensor) -> Tensor:
        if self.kind == "full":
            return torch.linalg.inv(self.covariance(x))
        return torch.diag_embed(1 / self.variance(x))

    def quadratic(self, x: Tensor, v: Tensor) -> Tensor:
        if self.kind == "full":
            return (v * torch.linalg.solve(self.covariance(x), v)).sum(-1)
        return (v.square() / self.variance(x)).sum(-1)

    def lowered(self, x: Tensor, v: Tensor) -> Tensor:
        if self.kind == "full":
            return torch.linalg.solve(self.covariance(x), v)
        return v / self.variance(x)

    def raised(self, x: Tensor, p: Tensor) -> Tensor:
        if self.kind == "full":
            return (self.covariance(x) @ p[..., None])[..., 0]
        return p * self.variance(x)

    def _host(self, x: Tensor) -> bool:
        """Whether compiled loops take these points."""
        return self.kind == "diagonal" and x.device.type == "cpu"

    def _loops(self, x: Tensor, v: Tensor) -> tuple[Any, ...]:
        """Points, steps and the data in the order of their widest column, as the loops take them."""
        if self._sorted is None:
            rows = self.moved.detach().cpu().double().numpy()
            axis = int(np.argmax(rows.std(0)))
            order = np.argsort(rows[:, axis], kind="stable")
            w = self.weights.detach().cpu().double().numpy()
            self._sorted = (rows[order].T.copy(), w[order], axis, self.sigma, self.rho)
        at = (x.detach() - self.centre.detach().to(x)).double().contiguous().numpy()
        return at, v.detach().double().contiguous().numpy(), *self._sorted

    def slopes(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if not self._host(x):
            return super().slopes(x, v)
        s, slope = self._swept(x, v, raised=False)
        Mv = v.detach() / s
        return (v.detach() * Mv).sum(1), slope, Mv

    def flow(self, x: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        if not self._host(x):
            return super().flow(x, p)
        s, slope = self._swept(x, p, raised=True)
        return p.detach() * s, 0.5 * slope

    def _swept(self, x: Tensor, v: Tensor, raised: bool) -> tuple[Tensor, Tensor]:
        from groundstate.math.distances.local_metric_numba import slopes

        loops = self._loops(x, v)
        s, slope = np.empty_like(loops[0]), np.empty_like(loops[0])
        slopes(*loops, raised, s, slope)
        return torch.from_numpy(s).to(x.dtype), torch.from_numpy(slope).to(x.dtype)

    def curvatures(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if not self._host(x):
            return super().curvatures(x, v)
        from groundstate.math.distances.local_metric_numba import curvatures

        loops = self._loops(x, v)
        q, d = loops[0].shape
        s, D, Q = np.empty((q, d)), np.empty((q, d, d)), np.empty((q, d, d))
        curvatures(*loops, s, D, Q)
        mixed = -2 * D * (loops[1] / s**2)[:, None]
        variance = torch.from_numpy(s).to(x.dtype)
        return (
            torch.from_numpy(Q).to(x.dtype),
            torch.from_numpy(mixed).to(x.dtype),
            torch.diag_embed(1 / variance),
        )

    def log_det(self, x: Tensor) -> Tensor:
        if self.kind == "full":
            return -torch.linalg.slogdet(self.covariance(x))[1]
        return -self.variance(x).log().sum(-1)


class _LocalVariance(torch.autograd.Function):
    r""":math:`S_j(m) = \sum_nw_n(m)(x_{nj} - m_j)^2` with its slope in m, by matrix products.

    With a direction g, :math:`\sum_jg_j\partial_kS_j = \sum_nw_n\frac{x_{nk} - m_k}{\sigma^2}r_n -
    2g_k\sum_nw_n(x_{nk} - m_k)` and :math:`r_n = \sum_jg_j(x_{nj} - m_j)^2`.
    """

    @staticmethod
    def forward(ctx: Any, m: Tensor, x: Tensor, weight: Tensor, sigma: float) -> Tensor:
        square = x.square()
        out, kept = [], []
        step = max(1, TILE // len(x))
        for part in m.split(step):
            W, S0, S1 = _sums(part, x, weight, sigma)
            out.append(W @ square - part * (2 * S1 - part * S0))
            kept += [W, S0, S1]
        ctx.save_for_backward(m, x, weight, *kept)
        ctx.sigma, ctx.step = sigma, step
        return torch.cat(out).clamp(min=0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (g,) = grads
        m, x, weight, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # a slope that will be differentiated itself
            kept = [t for part in m.split(ctx.step) for t in _sums(part, x, weight, ctx.sigma)]
        out = []
        parts = zip(m.split(ctx.step), g.split(ctx.step), strict=True)
        for i, (part, gp) in enumerate(parts):
            W, S0, S1 = kept[3 * i : 3 * i + 3]
            r = gp @ x.square().T - (2 * gp * part) @ x.T + (gp * part.square()).sum(1)[:, None]
            r = r * W
            pull = (r @ x - part * r.sum(1, keepdim=True)) / ctx.sigma**2
            out.append(pull - 2 * gp * (S1 - part * S0))
        return torch.cat(out), None, None, None


def _sums(m: Tensor, x: Tensor, weight: Tensor, sigma: float) -> list[Tensor]:
    """Weights of the rows at some places, their sums, and the sums of the weighted rows."""
    d2 = torch.addmm(x.square().sum(1), m, x.T, alpha=-2) + m.square().sum(1)[:, None]
    W = (d2.clamp(min=0) * (-0.5 / sigma**2)).exp() * weight
    return [W, W.sum(1, keepdim=True), W @ x]


@torch.no_grad()
def neighbor_width(x: Tensor, weights: Tensor, k: int = NEIGHBORS) -> float:
    """The weighted median over rows of the distance within which k others count.

    >>> neighbor_width(torch.arange(40.0)[:, None], torch.ones(40), 2)
    1.0
    """
    most = float(weights.sum())
    need = min(k + 1.0, most)  # the row itself counts too
    found = []
    for part in x.split(max(1, TILE // len(x))):
        d, order = torch.cdist(part, x, compute_mode="donot_use_mm_for_euclid_dist").sort(1)
        reached = weights[order].cumsum(1) >= need - 1e-9 * most
        found.append(d.gather(1, reached.to(torch.int8).argmax(1, keepdim=True))[:, 0])
    values, order = torch.cat(found).sort()
    half = weights[order].cumsum(0) >= 0.5 * most - 1e-9 * most
    return float(values[int(half.to(torch.int8).argmax())])
