r"""Chain: sequences with unary and pairwise energies, by dynamic programming in O(LK²)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.infer.base import Draws, FreeEnergy, Method, Minimum, Query
from groundstate.infer.exact.closed import energies_of
from groundstate.math.chains.chain import ChainDistribution, ChainFactors
from groundstate.registry import methods


@methods.register(
    formula=r"e(y) = \sum_t u_t(y_t) + \sum_t w_t(y_t, y_{t+1})", make=lambda energy: Chain()
)
@dataclass(frozen=True)
class Chain(Method):
    r"""Exact inference on a declared chain: min-sum, forward sums, backward sampling.

    Runs when ``chain`` is declared for the one free variable. A sequence that is known in part is
    a chain in which every known item forbids the other states.

    Examples
    --------
    >>> from groundstate.energy import Energy, Finite, Sequence, offers
    >>> class Pair(Energy):
    ...     def __init__(self):
    ...         super().__init__(y=Sequence(Finite(2), 3))
    ...     @offers.chain("y")
    ...     def factors(self):
    ...         unary = torch.tensor([[[0.0, 1.0], [0.5, 0.2], [1.0, 0.0]]])
    ...         return ChainFactors(unary, torch.tensor([[0.0, 0.7], [0.3, 0.0]]))
    ...     def forward(self, y):
    ...         f = self.factors()
    ...         return ChainFactors(f.unary.expand(len(y), -1, -1), f.pairwise).energy(y)
    >>> from groundstate.infer import marginalise, minimise
    >>> best = minimise(Pair(), "y")
    >>> best["y"].tolist(), round(best.energy.item(), 6)
    ([[0, 1, 1]], 0.9)
    >>> round(marginalise(Pair(), "y").value.item(), 6)
    -0.449719
    """

    operations: ClassVar[frozenset[str]] = frozenset({"minimise", "marginalise", "sample"})
    exact: ClassVar[bool] = True

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        if energy.ability("chain", *free) is None:
            return f"no chain is declared for {', '.join(map(repr, free))}"
        return None

    def factors(self, query: Query) -> ChainFactors:
        """The chain of a question, with known items held in place, ``B`` rows."""
        declared = query.energy.ability("chain", *query.free)
        assert declared is not None
        factors: ChainFactors = declared(**query.fixed)
        if factors.unary.shape[0] != query.rows:
            pairwise = factors.pairwise
            if pairwise.ndim == 4:
                pairwise = pairwise.expand(query.rows, -1, -1, -1)
            factors = ChainFactors(
                factors.unary.expand(query.rows, -1, -1), pairwise, factors.lengths
            )
        (name,) = query.free
        if name in query.masks:
            k = factors.unary.shape[-1]
            known = torch.nn.functional.one_hot(query.given[name].long(), k).bool()  # (B, L, K)
            forbidden = ~query.masks[name][..., None] & ~known
            unary = factors.unary.masked_fill(forbidden, math.inf)
            factors = ChainFactors(unary, factors.pairwise, factors.lengths)
        return factors

    def distribution(self, query: Query) -> ChainDistribution:
        """The exact distribution of the free sequence."""
        return ChainDistribution(self.factors(query), query.T)

    @torch.no_grad()
    def minimise(self, query: Query) -> Minimum:
        factors = self.factors(query)
        value = ChainDistribution(factors).mode
        e = factors.energy(value)
        return Minimum({query.free[0]: value}, e, True, torch.ones_like(e, dtype=torch.bool), 1)

    def marginalise(self, query: Query) -> FreeEnergy:
        distribution = self.distribution(query)
        if not math.isinf(query.T):
            return FreeEnergy(distribution.free_energy, "exact")
        factors = (
            distribution.factors
        )  # T=inf: the mean under the uniform distribution of what is allowed
        mu, pair = distribution.marginals, distribution.pair_marginals
        w = factors.pairwise.expand(pair.shape) if factors.pairwise.ndim == 2 else factors.pairwise
        mean = torch.where(mu > 0, mu * factors.unary, 0.0).flatten(1).sum(1)
        return FreeEnergy(mean + torch.where(pair > 0, pair * w, 0.0).flatten(1).sum(1), "exact")

    @torch.no_grad()
    def sample(self, query: Query, n: int) -> Draws:
        value = self.distribution(query).sample((n,), generator=query.generator)  # (n, B, L)
        values = {query.free[0]: value}
        return Draws(values, energies_of(query, values), "exact")
