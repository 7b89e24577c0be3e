r"""A mixture over columns of any kind, :math:`p(x) = \sum_z\pi_zN(x_r; \mu_z, \Sigma_z)\prod_jp_{zj}(x_j)`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from groundstate.compute.reduce import current
from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.energy.latent.table_mixture_distribution import TableMixtureDistribution
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Levels, Real

NARROW = 0.1  # of a column's variance: what a prior row says of the variance within a component
LEAST = 1e-6  # of a variance


def _example() -> TableMixtureEnergy:
    energy = TableMixtureEnergy(3, [0, 2, 0, 3])
    generator = torch.Generator().manual_seed(0)
    for value in (energy.logits, energy.tables):
        value.data.normal_(generator=generator)
    assert energy.normal is not None
    energy.normal.mu.data.normal_(generator=generator)
    return energy


@registered(
    r"e(x) = -\log\sum_z\pi_z\,N(x_r; \mu_z, \Sigma_z)\prod_jp_{zj}(x_j)", _example
)  # fmt: skip
class TableMixtureEnergy(Energy):
    r"""One of k components holds, :math:`e(x) = -\log\sum_z\pi_z\,N(x_r; \mu_z, \Sigma_z)\prod_jp_{zj}(x_j)`:
    its numbers are Gaussian together, its levels are independent.

    Every marginal and every conditional of it is a mixture of the same form.

    Parameters
    ----------
    k : number of components
    levels : number of values of each column, 0 for a real one
    prior : rows that each component is given beforehand: their levels are as in the table, their numbers
        at the component's mean with a tenth of the column's variance

    Attributes
    ----------
    logits : Parameter, ``(k,)``; :math:`\pi` is their softmax
    tables : Parameter, ``(k, sum of the levels)`` logits of one column after the other
    normal : GaussianMixtureEnergy of the real columns with equal weights, None where there are none

    Examples
    --------
    >>> e = TableMixtureEnergy(1, [2, 2])
    >>> e(x=torch.zeros(1, 2)).exp().item()
    4.0
    """

    normalised = frozenset({"x"})

    def __init__(self, k: int, levels: Sequence[int], prior: float = 1.0) -> None:
        counts = [int(n) for n in levels]
        super().__init__(x=Levels(counts) if any(counts) else Real(len(counts)))
        self.levels, self.prior = counts, float(prior)
        self.real = [j for j, n in enumerate(counts) if not n]
        self.discrete = [j for j, n in enumerate(counts) if n]
        self.resize(k)

    def resize(self, k: int) -> None:
        """New parameters of k components."""
        before = getattr(self, "logits", torch.zeros(0))
        self.k, d = int(k), len(self.real)
        self.logits = nn.Parameter(before.new_zeros(k))
        self.tables = nn.Parameter(before.new_zeros(k, sum(self.levels)))
        numbers = GaussianMixtureEnergy(k, d, reg_covar=LEAST, uniform=True) if d else None
        self.normal = None if numbers is None else numbers.to(before)

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "levels": self.levels, "prior": self.prior}

    # --- pieces --------------------------------------------------------------------------

    def blocks(self, values: Tensor) -> list[Tensor]:
        """Of ``(..., sum of the levels)`` the part of each column of levels."""
        return list(values.split([self.levels[j] for j in self.discrete], -1))

    def log_tables(self) -> list[Tensor]:
        """Log probabilities of the levels of each column of them, ``(k, levels)``."""
        return [torch.log_softmax(block, 1) for block in self.blocks(self.tables)]

    def joint(self, x: Tensor, free: Tensor | None = None) -> Tensor:
        r""":math:`\log\pi_z + \log p(x \mid z)` of the columns that are not free, ``(B, k)``."""
        logs = torch.log_softmax(self.logits, 0).expand(len(x), -1)
        if self.normal is not None:
            numbers = x[:, self.real]
            if free is None:
                e = self.normal.energies(numbers)
            else:
                e = self.normal.observed_energies(numbers.masked_fill(free[:, self.real], math.nan))
            logs = logs - e + math.log(self.k)
        for j, table in zip(self.discrete, self.log_tables(), strict=True):
            own = table.T[x[:, j].long().clamp(0, self.levels[j] - 1)]
            logs = logs + (own if free is None else own.masked_fill(free[:, j, None], 0.0))
        return logs

    def forward(self, x: Tensor) -> Tensor:
        return -self.joint(x).logsumexp(1)

    def log_marginal(self, x: Tensor, free: Tensor) -> Tensor:
        """log p of the columns that are not free, ``(B,)``."""
        return self.joint(x, free).logsumexp(1)

    # --- abilities -----------------------------------------------------------------------

    @offers.conditional("x", partial=True, mode=False)
    def conditional(
        self, x: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> TableMixtureDistribution:
        """The distribution of the free columns given the others."""
        return TableMixtureDistribution(self, x, mask, T)

    @offers.log_partition("x")
    def total(self, T: float = 1.0) -> Tensor:
        """0 at T = 1; a power of a sum has no closed integral at others."""
        self.conditional(T=T)
        return self.logits.new_zeros(1)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Independent draws: a component, then its columns; T divides logits and widens Gaussians."""
        from groundstate.math.distributions.operations import fresh

        blank = self.logits.new_zeros(n, len(self.levels))
        free = torch.ones_like(blank, dtype=torch.bool)
        whole = TableMixtureDistribution(self, blank, free)
        with torch.no_grad():
            return {"x": whole.draw(1, fresh(generator), T)[0]}

    # --- learning ------------------------------------------------------------------------

    def origin_at(self, x: Tensor, weights: Tensor | None) -> None:
        """Take sums of the real columns about their means: squares of large numbers lose digits."""
        if self.normal is not None:
            w = x.new_ones(len(x), dtype=torch.float64) if weights is None else weights.double()
            sums = {"n": w.sum(), "x": w @ x[:, self.real].double()}
            sums = current().sum_dict(sums)
            self.normal.origin.copy_(sums["x"] / sums["n"])

    def expected(self, weights: Tensor | None, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Sums over rows weighted by responsibilities, and log p of each row, ``(B,)``."""
        joint = self.joint(x).double()
        return self.sums(weights, x, joint.softmax(1)), joint.logsumexp(1)

    def sums(self, weights: Tensor | None, x: Tensor, r: Tensor) -> dict[str, Tensor]:
        """Sums over rows weighted by r ``(B, k)``, which add over chunks and shards."""
        given = r if weights is None else r * weights.double()[:, None]
        out = {"n": given.sum(0)}
        if self.normal is not None:
            z = Categorical(probs=r, validate_args=False)
            moments = self.normal.stats(weights, x[:, self.real], z)
            out |= {name: moments[name] for name in ("x", "xx")}
        parts = []
        for j in self.discrete:
            hot = nn.functional.one_hot(x[:, j].long().clamp(0, self.levels[j] - 1), self.levels[j])
            parts.append(given.T @ hot.to(given))
        if parts:
            out["counts"] = torch.cat(parts, 1)
        return out

    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """The most probable θ given the sums and the prior rows of every component."""
        n, prior = stats["n"], self.prior
        self.logits.copy_((n + prior + 1e-300).log())
        if self.normal is not None:
            _, mean, cov = self.normal.moments(stats)
            whole = {name: stats[name].sum(0, keepdim=True) for name in ("n", "x", "xx")}
            spread = self.normal.moments(whole)[2][0].diagonal().clamp_min(LEAST)
            mass = n[:, None, None]
            cov = (mass * cov + prior * NARROW * spread.diag()) / (mass + prior).clamp_min(1e-300)
            self.normal.from_moments(n, mean, cov)
        if self.discrete:
            share = stats["counts"].sum(0) / n.sum()
            self.tables.copy_((stats["counts"] + prior * share).clamp_min(1e-300).log())
