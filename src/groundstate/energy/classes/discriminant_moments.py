r"""Covariances of classes from sums over rows, and their inverse roots.

For rows about an origin, :math:`\Sigma_k = \tfrac1{n_k}\sum_i w_i x_ix_i^\top - m_km_k^\top`; tied,
:math:`\Sigma = \sum_k\pi_k\Sigma_k`. They may be smoothed, shrunk or pulled towards the identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from groundstate.energy.classes.discriminant_numba import widest
from groundstate.energy.classes.naive_bayes.missing import seen_weight, some_missing

TINY = 1e-300


class RankDeficient(np.linalg.LinAlgError):
    """A class whose rows leave some direction without variance; ``index`` says which."""

    def __init__(self, index: int, label: object = None) -> None:
        self.index = index
        super().__init__(
            f"The covariance matrix of class {index if label is None else label} is not full rank; "
            "drop columns that are constant or combinations of others, or raise reg_param or "
            "shrinkage"
        )


@dataclass(frozen=True)
class Shape:
    """What kind of covariance is learned, and how it is kept away from singular."""

    covariance: str
    smoothing: float
    shrinkage: float | str | None
    reg_param: float
    tol: float
    by_prior: bool = False

    @property
    def per_class(self) -> bool:
        """Whether a matrix of every class is needed."""
        return self.covariance == "full" or self.shrinkage == "auto" or self.by_prior

    @property
    def changes(self) -> bool:
        """Whether a covariance is shrunk or pulled towards the identity."""
        return self.shrinkage is not None or bool(self.reg_param)

    def squares(
        self, x: Tensor, y: Tensor, weights: Tensor | None, balance: Tensor
    ) -> dict[str, Tensor]:
        """Sums of squares of rows about their origin, ``(d, d)`` or ``(k, d, d)``."""
        k = len(balance)
        if not self.per_class:
            if weights is None and set(balance.tolist()) == {1.0}:
                return {"xx": x.T @ x}
            w = balance[y] if weights is None else weights.double() * balance[y]
            return {"xx": (x * w[:, None]).T @ x}
        if weights is None and self.shrinkage != "auto":
            parts = [x[y == c] for c in range(k)]
            return {"xx": torch.stack([part.T @ part for part in parts])}
        w = x.new_ones(len(x)) if weights is None else weights.double()
        more = ("third", "fourth") if self.shrinkage == "auto" else ()
        found = {name: x.new_zeros(k, x.shape[1], x.shape[1]) for name in ("xx", *more)}
        for c in range(k):
            rows = y == c
            part, v = x[rows], w[rows][:, None]
            found["xx"][c] = (part * v).T @ part
            if more:
                square = part.square() * v
                found["third"][c] = square.T @ part
                found["fourth"][c] = square.T @ part.square()
        return found


def class_shapes(
    shape: Shape, stats: dict[str, Tensor], seen: Tensor, shift: Tensor, mu: Tensor, balance: Tensor
) -> tuple[Tensor, int, Tensor]:
    """Inverse roots U of the covariances, their rank, and a root of a singular tied one."""
    if shape.covariance == "diag":
        within, total = total_variance(stats, mu - shift, seen)
        missing = seen is stats.get("seen")
        if missing:  # nothing seen in a class: as in all rows
            within = torch.where(stats["seen"] > 0, within, total)
        variance = within + shape.smoothing * total.max()
        if missing:  # nothing seen at all: any width will do
            variance = torch.where(stats["seen"].sum(0) > 0, variance, 1.0)
        # where nothing varies any width will do
        return torch.where(variance > 0, variance, 1.0).rsqrt(), mu.shape[1], mu[:0]
    if shape.per_class:
        n = stats["n"].clamp_min(TINY)
        cov = stats["xx"] / n[:, None, None] - shift[:, :, None] * shift[:, None]
        if shape.changes:
            cov = torch.stack([_shrunk(shape, c, stats, i, shift) for i, c in enumerate(cov)])
    else:
        share = (balance * stats["n"])[:, None]
        cov = (stats["xx"] - (share * shift).T @ shift) / share.sum().clamp_min(TINY)
        cov = _shrunk(shape, cov, stats, 0, shift) if shape.changes else cov
    if shape.covariance == "full":
        return _full_root(shape, cov), mu.shape[1], mu[:0]
    if shape.per_class:
        share = balance * stats["n"]
        cov = (share[:, None, None] * cov).sum(0) / share.sum().clamp_min(TINY)
    return _tied_root(shape, cov)


def total_variance(
    stats: dict[str, Tensor], origin: Tensor, seen: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Variances within the classes ``(k, d)`` and of all rows ``(d,)``, for diagonal sums."""
    seen = seen_weight(stats) if seen is None else seen
    n = seen.clamp_min(TINY)
    shift = stats["x"] / n
    within = (stats["xx"] / n - shift.square()).clamp_min(0.0)
    share = seen / seen.sum(0).clamp_min(TINY)
    mu = shift + origin
    middle = (share * mu).sum(0)
    return within, (share * (within + (mu - middle).square())).sum(0)


def largest_variance(stats: dict[str, Tensor], origin: Tensor) -> float:
    """The largest variance of a feature over all rows, for diagonal sums."""
    if origin.is_cpu and not some_missing(stats):
        sums = stats["n"].numpy(), stats["x"].numpy(), stats["xx"].numpy()
        return float(widest(*sums, origin.numpy()))
    return float(total_variance(stats, origin)[1].max())


def _shrunk(shape: Shape, cov: Tensor, stats: dict[str, Tensor], c: int, shift: Tensor) -> Tensor:
    d = len(cov)
    eye = torch.eye(d, dtype=cov.dtype, device=cov.device)
    if shape.shrinkage == "auto":
        unit = _deviation(cov.diagonal())
        correlation = cov / unit / unit[:, None]
        level = correlation.diagonal().mean()
        n = stats["n"][c].clamp_min(TINY)
        square = correlation.square().sum()
        distance = (square - d * level.square()) / d
        fourth = (_fourth(stats, c, shift[c]) / unit.square() / unit.square()[:, None]).sum()
        noise = torch.minimum((fourth / n - square) / (n * d), distance)
        s = noise / distance if float(distance) > 0 else torch.zeros_like(noise)
        cov = ((1 - s) * correlation + s * level * eye) * unit * unit[:, None]
    elif shape.shrinkage is not None:
        s_ = float(shape.shrinkage)
        cov = (1 - s_) * cov + s_ * cov.diagonal().mean() * eye
    if shape.reg_param:
        cov = (1 - shape.reg_param) * cov + shape.reg_param * eye
    return cov


def _fourth(stats: dict[str, Tensor], c: int, m: Tensor) -> Tensor:
    r""":math:`\sum_i w_i(x_{ij}-m_j)^2(x_{il}-m_l)^2` from sums about the origin, ``(d, d)``."""
    S, n, square = stats["xx"][c], stats["n"][c], m.square()
    A = stats["third"][c] * m
    across = torch.outer(S.diagonal() - 1.5 * n * square, square)
    return stats["fourth"][c] - 2 * (A + A.T) + across + across.T + 4 * torch.outer(m, m) * S


def _deviation(variance: Tensor) -> Tensor:
    return torch.where(variance > 0, variance, 1.0).sqrt()


def _upper(cov: Tensor) -> Tensor:
    """Upper triangular U with UUᵀ = Σ⁻¹, of one matrix or of many."""
    eye = torch.eye(cov.shape[-1], dtype=cov.dtype, device=cov.device)
    lower = torch.linalg.cholesky(cov)
    return torch.linalg.solve_triangular(lower, eye, upper=False).mT


def _full_root(shape: Shape, cov: Tensor) -> Tensor:
    unit = _deviation(cov.diagonal(dim1=1, dim2=2))  # (k, d)
    scaled = cov / unit[:, None] / unit[:, :, None]
    for c, lowest in enumerate(torch.linalg.eigvalsh(scaled)[:, 0].tolist()):
        if lowest <= shape.tol**2:
            raise RankDeficient(c)
    return _upper(scaled) / unit[:, :, None]


def _tied_root(shape: Shape, cov: Tensor) -> tuple[Tensor, int, Tensor]:
    d = len(cov)
    unit = _deviation(cov.diagonal())
    scaled = cov / unit / unit[:, None]
    values, vectors = torch.linalg.eigh(scaled)
    kept = values > shape.tol**2
    rank = int(kept.sum())
    if rank == d:
        return _upper(scaled) / unit[:, None], d, cov[:0]
    U = cov.new_zeros(d, d)
    U[:, :rank] = vectors[:, kept] * values[kept].rsqrt() / unit[:, None]
    return U, rank, vectors[:, kept] * values[kept].sqrt() * unit[:, None]
