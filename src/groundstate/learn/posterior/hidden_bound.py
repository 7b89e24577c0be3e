r"""Completing the data with a distribution of a family: the E-step of variational EM."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.learn.base import Batch
from groundstate.learn.posterior.guides import posterior_in_family
from groundstate.learn.posterior.hidden import Completion, Posterior, spread_points
from groundstate.learn.rules.variational import Variational, bound
from groundstate.math.distributions.operations import draw, is_gaussian

POINTS = 64  # draws that stand for q where averages over it are not exact


@dataclass(frozen=True)
class BoundCompletion(Completion):
    r"""Distributions from a ``Variational``: :math:`q_i` in its family, the bound
    :math:`E_q[e] - T\,H(q) \ge F` in place of F.
    """

    q: Variational

    def reason_against(self, T: float) -> str | None:
        if T == 0 or math.isinf(T):
            return f"a bound needs a temperature in (0, inf), got T={T:g}"
        if self.q.encoder is not None:
            return "the network of q learns by gradient steps on the bound; use Stochastic"
        return self.q.reason_against(self.energy, (self.latent,))

    def _best(self, batch: Batch, T: float) -> Distribution:
        family = self.q.families(self.energy, (self.latent,))[self.latent]
        phi = posterior_in_family(self.energy, self.latent, family, batch, T)
        if phi is not None:
            return family.distribution(self.energy.spaces[self.latent], phi)
        return self.q.distributions(self.energy, (self.latent,), batch, T)[self.latent]

    def distribution(self, batch: Batch, T: float) -> tuple[Posterior, Tensor]:
        distribution = self._best(batch, T)
        return distribution, self._bound(distribution, batch, T)

    def _bound(self, distribution: Distribution, batch: Batch, T: float) -> Tensor:
        n = max(self.q.n, POINTS)
        generator = torch.Generator(self.energy.placement(batch)[0]).manual_seed(0)
        distributions = {self.latent: distribution}
        return bound(
            self.energy,
            distributions,
            batch,
            T=T,
            n=n,
            estimator=self.q.estimator,
            generator=generator,
        )

    def held(self, batch: Batch, T: float) -> tuple[Tensor, Tensor]:
        energy, name = self.energy, self.latent
        distribution = self._best(batch, T)
        if self.listed:
            values = energy.spaces[name].enumerate(*energy.placement(batch))  # (K, *event)
            rows = int(distribution.batch_shape[0])
            probs = (
                distribution.log_prob(values[:, None].expand(-1, rows, *values.shape[1:])).exp().T
            )
            return probs, torch.special.entr(probs).sum(-1)
        if is_gaussian(distribution) and name in energy.gaussian:
            return spread_points(distribution), distribution.entropy()
        generator = torch.Generator(energy.placement(batch)[0]).manual_seed(0)
        points = draw(distribution, POINTS, generator)  # (n, B, *event)
        try:
            entropy = distribution.entropy()
        except NotImplementedError:
            entropy = -distribution.log_prob(points).mean(0)
        return points.transpose(0, 1), entropy
