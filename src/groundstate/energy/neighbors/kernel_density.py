r"""The energy of a kernel density: minus the log of a mean of kernels around remembered rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.neighbors.kernel_distribution import KernelDistribution, pick
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Levels, Real
from groundstate.errors import DataError, Unsupported
from groundstate.math.distances.dissimilarities import TABLES, table
from groundstate.math.distances.euclidean import pairwise, power_of
from groundstate.math.distributions.operations import fresh
from groundstate.math.distributions.radial import PROFILES, draw_radial, log_volume

TILE = 2**18  # kernel values of one piece of rows: they stay in the cache
LEAST = 32  # rows of a piece


def _example() -> KernelDensityEnergy:
    energy = KernelDensityEnergy(2)
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.5], [0.0, 1.0]])
    energy.remember(rows, torch.tensor([1.0, 2.0, 1.0]), 0.7)
    return energy


@registered(
    r"e(x) = -\log\tfrac1{\sum_iw_i}\sum_i w_i\,h^{-d}K\bigl(\tfrac{x-x_i}h\bigr)", _example
)
class KernelDensityEnergy(Energy):
    r"""Minus the log of a mean of kernels,
    :math:`e(x) = -\log\frac1W\sum_iw_i\,h^{-d}K\bigl((x-x_i)/h\bigr)\prod_jA_j(x_j, x_{ij})`.

    K is a kernel of the distance of the real columns, normalised for the Euclidean one, and A Aitchison and
    Aitken's kernel of a column of k categories: :math:`1-\lambda_j` for equal ones and
    :math:`\lambda_j/(k-1)` for others.

    Parameters
    ----------
    d : number of columns
    kernel : name in ``groundstate.math.distributions.radial.PROFILES``
    levels : of each column its number of categories, 0 for a real one; None: all are real
    metric : name of a Minkowski metric or of another dissimilarity
    p : exponent of "minkowski"
    n : room for so many rows, before they are loaded

    Attributes
    ----------
    kept : buffer, ``(n, d)``, float64
    log_weight : buffer, ``(n,)``, normalised
    bandwidth : buffer, ``()``, h
    spill : buffer, ``(d,)``, λ of columns of categories

    Examples
    --------
    >>> e = KernelDensityEnergy(1)
    >>> e.remember(torch.tensor([[0.0]]), None, 1.0)
    >>> round(e(x=torch.tensor([[0.0]])).item(), 4)  # log √(2π)
    0.9189
    """

    normalised = frozenset({"x"})
    missing = frozenset({"x"})
    kept: Tensor
    log_weight: Tensor
    bandwidth: Tensor
    spill: Tensor

    def __init__(
        self,
        d: int,
        kernel: Any = "gaussian",
        levels: Sequence[int] | None = None,
        *,
        metric: str = "euclidean",
        p: float = 2.0,
        n: int = 0,
    ) -> None:
        counts = [0] * d if levels is None else [int(k) for k in levels]
        super().__init__(x=Levels(counts) if any(counts) else Real(d))
        self.d, self.kernel, self.levels, self.metric, self.p = d, kernel, counts, metric, float(p)
        if power_of(metric, p) is None and metric not in TABLES:
            raise Unsupported(f"metric {metric!r} is none that a kernel density measures by")
        self.register_buffer("kept", torch.zeros(n, d))
        self.register_buffer("log_weight", torch.zeros(n))
        self.register_buffer("bandwidth", torch.ones(()))
        self.register_buffer("spill", torch.zeros(d))

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "kernel": self.kernel, "levels": self.levels, "metric": self.metric,
            "p": self.p, "n": len(self.kept),
        }  # fmt: skip

    @torch.no_grad()
    def remember(
        self, rows: Tensor, weight: Tensor | None, bandwidth: float, spill: Any = None
    ) -> None:
        """Keep rows ``(n, d)`` with their weights."""
        if not len(rows):
            raise DataError("a kernel density needs at least one row of positive weight")
        w = torch.ones(len(rows), dtype=torch.float64) if weight is None else weight.double()
        self.kept = rows.detach().clone().to(self.kept)
        self.log_weight = (w.log() - w.sum().log()).to(self.kept)
        self.bandwidth.fill_(float(bandwidth))
        if spill is not None:
            self.spill.copy_(torch.as_tensor(spill))

    @property
    def is_euclidean(self) -> bool:
        """Whether the density integrates to one and columns separate."""
        return power_of(self.metric, self.p) == 2.0

    # --- density -------------------------------------------------------------------------

    def forward(self, x: Tensor) -> Tensor:
        return -self.log_density(x)

    def log_density(self, x: Tensor, columns: Sequence[int] | None = None) -> Tensor:
        """log p of rows, or of some of their columns alone (of a Gaussian kernel), ``(B,)``."""
        terms = self._terms(x, columns)
        parts = []
        for part in x.split(max(LEAST, TILE // max(1, len(self.kept)))):
            logs, shift = terms(part)
            parts.append(logs.logsumexp(1) + shift)
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(x)

    def log_terms(self, x: Tensor, columns: Sequence[int] | None = None) -> Tensor:
        """Log of weight times kernel of every remembered row, ``(B, n)``."""
        logs, shift = self._terms(x, columns)(x)
        return (logs + shift[:, None]).to(x)

    def _terms(
        self, x: Tensor, columns: Sequence[int] | None
    ) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        """Of a piece of x the logs ``(B, n)`` up to what is added to each of its rows ``(B,)``, in double
        precision; all that does not depend on the piece is done once."""
        every = list(range(self.d)) if columns is None else list(columns)
        real = [j for j in every if not self.levels[j]]
        if columns is not None and self.kernel != "gaussian":
            raise Unsupported(
                f"columns of a kernel density with kernel={self.kernel!r} do not separate; use "
                "kernel='gaussian'"
            )
        base, h = self.log_weight.double(), self.bandwidth.double()
        if real:
            base = base - (log_volume(self.kernel, len(real)) + len(real) * h.log())
        rows = self.kept[:, real].double()
        middle = rows.mean(0)  # differences of large numbers would lose digits
        b = (rows - middle) / h
        norms = b.square().sum(1)
        p, profile = power_of(self.metric, self.p), PROFILES[self.kernel]

        def terms(part: Tensor) -> tuple[Tensor, Tensor]:
            shift = base.new_zeros(len(part))
            if not real:
                logs = base.expand(len(part), -1)
            elif p == 2.0:
                a = (part[:, real].double() - middle) / h
                own = a.square().sum(1)
                if self.kernel == "gaussian":  # -|a - b|²/2, of which a row's own part comes last
                    logs, shift = torch.addmm(base - 0.5 * norms, a, b.T), -0.5 * own
                else:
                    square = torch.addmm(norms, a, b.T, alpha=-2) + own[:, None]
                    logs = base + profile(square.clamp_min(1e-30).sqrt())  # a root has a slope
            else:
                given = part[:, real].double()
                u = table(self.metric, given, rows) if p is None else pairwise(given, rows, p)
                logs = base + profile(u / h)
            for j in every:
                if k := self.levels[j]:
                    same = part[:, j, None].double().round() == self.kept[:, j].double()
                    lam = self.spill[j].double()
                    logs = logs + torch.where(same, (1 - lam).log(), (lam / max(k - 1, 1)).log())
            return logs, shift

        return terms

    # --- abilities -----------------------------------------------------------------------

    @offers.conditional("x", partial=True)
    def conditional(
        self, x: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> KernelDistribution:
        """The distribution of the free columns given the others."""
        value = self.kept.new_zeros(1, self.d) if x is None else x
        free = torch.ones_like(value, dtype=torch.bool) if mask is None else mask
        return KernelDistribution(self, value, free, T)

    @offers.log_partition("x")
    def total(self, T: float = 1.0) -> Tensor:
        """0 at T = 1; a power of a sum has no closed integral at others."""
        self.conditional(T=T)
        return self.kept.new_zeros(1)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        r"""Independent draws: a remembered row, then the kernel around it, :math:`\sqrt T` times as wide."""
        generator = fresh(generator)
        with torch.no_grad():
            ends = self.log_weight.double().exp().cumsum(0)
            at = pick(ends.expand(1, -1), n, generator)[:, 0]
            return {"x": self.around(at, generator, math.sqrt(T))}

    def around(self, at: Tensor, generator: torch.Generator, wide: float = 1.0) -> Tensor:
        """Draws of the kernel around rows of these numbers, ``(m, d)``."""
        p = power_of(self.metric, self.p)
        if p is None:
            raise Unsupported(f"draws around rows are not defined for metric={self.metric!r}")
        out = self.kept[at].clone()
        real = [j for j in range(self.d) if not self.levels[j]]
        if real:
            noise = draw_radial(self.kernel, len(at), len(real), generator, p)
            out[:, real] += (wide * self.bandwidth.double() * noise.to(out.device)).to(out)
        for j, k in enumerate(self.levels):
            if k > 1:
                u = torch.rand(len(at), generator=generator, device=generator.device).to(out)
                other = torch.randint(
                    1, k, (len(at),), generator=generator, device=generator.device
                )
                moved = (out[:, j] + other.to(out)) % k
                out[:, j] = torch.where(u < self.spill[j], moved, out[:, j])
        return out
