r"""Completing the data with a law of a family: the E-step of variational EM."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.learn.base import Batch
from groundstate.learn.posterior.guides import posterior_in_family
from groundstate.learn.posterior.hidden import Completion, Law, spread_points
from groundstate.learn.rules.variational import Variational, bound
from groundstate.math.distributions.operations import draw, is_gaussian

POINTS = 64  # draws that stand for q where averages over it are not exact


@dataclass(frozen=True)
class BoundCompletion(Completion):
    r"""Laws from a ``Variational``: :math:`q_i` in its family, the bound
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
            return family.law(self.energy.spaces[self.latent], phi)
        return self.q.laws(self.energy, (self.latent,), batch, T)[self.latent]

    def law(self, batch: Batch, T: float) -> tuple[Law, Tensor]:
        law = self._best(batch, T)
        return law, self._bound(law, batch, T)

    def _bound(self, law: Distribution, batch: Batch, T: float) -> Tensor:
        n = max(self.q.n, POINTS)
        generator = torch.Generator(self.energy.placement(batch)[0]).manual_seed(0)
        laws = {self.latent: law}
        return bound(
            self.energy, laws, batch, T=T, n=n, estimator=self.q.estimator, generator=generator
        )

    def held(self, batch: Batch, T: float) -> tuple[Tensor, Tensor]:
        energy, name = self.energy, self.latent
        law = self._best(batch, T)
        if self.listed:
            values = energy.spaces[name].enumerate(*energy.placement(batch))  # (K, *event)
            rows = int(law.batch_shape[0])
            probs = law.log_prob(values[:, None].expand(-1, rows, *values.shape[1:])).exp().T
            return probs, torch.special.entr(probs).sum(-1)
        if is_gaussian(law) and name in energy.gaussian:
            return spread_points(law), law.entropy()
        generator = torch.Generator(energy.placement(batch)[0]).manual_seed(0)
        points = draw(law, POINTS, generator)  # (n, B, *event)
        try:
            entropy = law.entropy()
        except NotImplementedError:
            entropy = -law.log_prob(points).mean(0)
        return points.transpose(0, 1), entropy


__all__ = ["BoundCompletion"]
