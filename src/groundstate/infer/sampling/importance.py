r"""Importance: integrals from the draws of another distribution.

.. math:: \log w_i = -e(z_i)/T - \log q(z_i), \qquad \log\hat Z = \log\tfrac1n\sum_i w_i,
          \qquad z_i \sim q.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.errors import Unreliable
from groundstate.infer.base import Draws, FreeEnergy, Method, Query
from groundstate.infer.exact.closed import energies_of
from groundstate.infer.pack import is_simplex, no_gradient
from groundstate.infer.sampling.proposals import Proposal, ProposalLike
from groundstate.math.stats.psis import pareto_k, smooth, weight_ess
from groundstate.registry import methods

JUDGED_N = 25  # with fewer weights there is no tail to look at
TRUSTED_K = 0.7  # above it the weights' variance may be infinite for any practical n


@methods.register(
    formula=r"\log\hat Z = \log\tfrac1n\sum_i e^{-e(z_i)/T}/q(z_i)",
    make=lambda energy: Importance(),
)
@dataclass(frozen=True)
class Importance(Method):
    r"""Weigh draws of a proposal by :math:`w = e^{-e/T}/q`.

    :math:`\hat Z` is unbiased, so :math:`\log\hat Z` is biased down and ``F`` up. ``q`` must be
    positive wherever :math:`e^{-e}` is; its own draws cannot show where it is not, so the
    effective sample size and the Pareto tail index are always returned in ``info`` and a tail
    index above 0.7 warns. The best proposal is the posterior: its weights are constant.

    Parameters
    ----------
    proposal : distribution, mapping of them by name, or a callable from the given values to either; None
        fits a Gaussian to real variables with :func:`fit_proposal` and mixes in a wider one
    n : draws for ``marginalise``
    self_normalised : make the weights of ``sample`` sum to one over the draws of a row
    smooth : "psis" replaces the largest weights by Pareto quantiles

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> from groundstate.energy import Energy, Real
    >>> class Half(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Real(1))
    ...     def forward(self, x):
    ...         return x.square().sum(-1)
    >>> from groundstate.infer import marginalise
    >>> q = Importance(Normal(torch.zeros(1), torch.full((1,), 0.5**0.5)), n=10)
    >>> round(marginalise(Half(), "x", method=q).value.item(), 4)  # -log sqrt(pi): q is the distribution
    -0.5724
    """

    proposal: ProposalLike | None = None
    n: int = 1000
    self_normalised: bool = False
    smooth: Literal["psis"] | None = None

    operations: ClassVar[frozenset[str]] = frozenset({"marginalise", "sample"})

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        if masks:
            return f"{', '.join(map(repr, masks))} is known in part"
        spaces = [energy.spaces[name] for name in free]
        if self.proposal is None and not all(s.is_real and not is_simplex(s) for s in spaces):
            return (
                "variables that are not real vectors need proposal=, a distribution with log_prob"
            )
        if self.proposal is None:
            reasons = [no_gradient(energy, name) for name in free]
            return next((f"{reason}; pass proposal=" for reason in reasons if reason), None)
        return None

    def _proposal(self, query: Query) -> Proposal:
        if self.proposal is not None:
            return Proposal(self.proposal, query)
        from groundstate.infer.sampling.fitted_proposals import fit_distribution

        return Proposal(fit_distribution(query, guard=True), query)

    def weigh(self, query: Query, n: int) -> tuple[dict[str, Tensor], Tensor, Tensor]:
        """Draws ``(n, B, *event)``, their energies and log weights ``(n, B)``."""
        proposal = self._proposal(query)
        values = proposal.draw(n, query.generator)
        e = energies_of(query, values)
        log_weight = -e / query.T - proposal.log_prob(values).detach()
        if self.smooth == "psis":
            log_weight = log_weight + _smoothing(log_weight.detach())
        return values, e, log_weight

    def marginalise(self, query: Query) -> FreeEnergy:
        _, _, log_weight = self.weigh(query, self.n)
        return estimate(log_weight, query.T)

    @torch.no_grad()
    def sample(self, query: Query, n: int) -> Draws:
        values, e, log_weight = self.weigh(query, n)
        if n >= JUDGED_N:
            diagnose(log_weight)
        if self.self_normalised:
            log_weight = log_weight - log_weight.logsumexp(0)
        return Draws(values, e, "weighted", log_weight=log_weight)


def estimate(log_weight: Tensor, T: float) -> FreeEnergy:
    """``F`` with its standard error by the delta method, from log weights ``(n, B)``."""
    n = log_weight.shape[0]
    log_z = log_weight.logsumexp(0) - math.log(n)  # (B,)
    with torch.no_grad():
        w = (log_weight - log_z).exp()  # mean one
        stderr = T * w.std(0) / math.sqrt(n) if n > 1 else torch.full_like(log_z, math.inf)
    return FreeEnergy(-T * log_z, "estimate", stderr, diagnose(log_weight.detach()))


def diagnose(log_weight: Tensor) -> dict[str, Any]:
    """Effective sample size and tail index ``(B,)``; warns when the tail is too heavy."""
    n = log_weight.shape[0]
    equal = log_weight.amax(0) - log_weight.amin(0) < 1e-6  # rounding has no tail
    k = torch.where(equal, -math.inf, pareto_k(log_weight))
    bad = k > TRUSTED_K
    if n >= JUDGED_N and bool(bad.any()):
        warnings.warn(
            f"importance weights have a heavy tail in {int(bad.sum())} of {len(k)} rows "
            f"(Pareto k up to {float(k.max()):.2f} > {TRUSTED_K}); the estimate and its standard "
            "error cannot be trusted, take a wider or better proposal",
            Unreliable,
            stacklevel=4,
        )
    return {"ess": weight_ess(log_weight), "pareto_k": k, "n": n}


def _smoothing(log_weight: Tensor) -> Tensor:
    """What Pareto smoothing adds to the log weights; the body of the weights stays as it is."""
    smoothed = smooth(log_weight)[0]  # up to a constant per row
    middle = log_weight.shape[0] // 2
    at = log_weight.argsort(0)[middle : middle + 1]  # the median is never in the tail
    shift = log_weight.gather(0, at) - smoothed.gather(0, at)
    change = smoothed + shift - log_weight
    return torch.where(torch.isfinite(change), change, torch.zeros_like(change))
