r"""Completing the data: the distribution of the hidden variable, and energies averaged over it.

For a row with hidden z the two halves of EM need
:math:`q(z) = e^{-e(x,z)/T}/Z`, :math:`F = -T\log\int e^{-e/T}dz` and, with q held fixed,
:math:`E_q[e]` at other parameters. A finite z is listed. A Gaussian z is stood for by the
:math:`2l` points :math:`m \pm \sqrt l\,C_j` (:math:`CC^\top` its covariance), which average every
quadratic exactly, and an energy whose conditional is Gaussian is a quadratic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from groundstate.energy.base import Energy
from groundstate.energy.exact import exact_free_energy, exact_minimum, minimum_way
from groundstate.energy.spaces import Finite
from groundstate.errors import Unsupported
from groundstate.infer.exact.finite_distributions import ListedDistribution
from groundstate.learn.base import Batch
from groundstate.math.chains.chain import ChainDistribution
from groundstate.math.distributions.operations import gaussian_moments, is_gaussian
from groundstate.math.info.free_energy import boltzmann_logits, free_energy

LISTED = 2**12  # values of a hidden variable that are listed

Posterior = Tensor | Distribution  # a tensor is a hidden value known for certain (T=0)


@dataclass(frozen=True)
class Completion:
    """What is known of one hidden variable of an energy once the others are given."""

    energy: Energy
    latent: str

    @property
    def listed(self) -> bool:
        """Whether the hidden values are few enough to be listed in one table."""
        return self.energy.spaces[self.latent].size <= LISTED

    def reason_against(self, T: float) -> str | None:
        """Why the distribution of the hidden variable is not known at T, or None. Computes nothing."""
        energy, name = self.energy, self.latent
        if T == 0:
            known = minimum_way(energy, (name,)) is not None
            return None if known else f"the minimum over {name!r} has no exact form"
        if self.listed:
            return None
        if math.isinf(T):
            return f"T=inf needs at most {LISTED} values of {name!r}"
        if any(energy.ability(kind, name) is not None for kind in ("conditional", "chain")):
            return None
        return (
            f"the distribution of {name!r} given the rest is not known: no conditional is declared"
        )

    def distribution(self, batch: Batch, T: float) -> tuple[Posterior, Tensor]:
        """The distribution of the hidden variable and the free energy F ``(B,)`` of every row."""
        energy, name = self.energy, self.latent
        if T == 0:
            best = exact_minimum(energy, (name,), batch)
            assert best is not None
            return best[name], energy(**batch, **best)
        if isinstance(energy.spaces[name], Finite):
            probs, F = soften(energy.table(name, **batch), T)
            return Categorical(probs=probs, validate_args=False), F
        conditional = energy.ability("conditional", name)
        chain = energy.ability("chain", name)
        distribution: Posterior
        if conditional is not None and not math.isinf(T):
            distribution = conditional(**batch, T=T)
        elif chain is not None and not math.isinf(T):
            distribution = ChainDistribution(chain(**batch), T)
        else:
            table = energy.table(name, **batch)
            distribution = ListedDistribution(
                {name: energy.spaces[name]}, boltzmann_logits(table, T)
            )
        free = exact_free_energy(energy, (name,), batch, T)
        assert free is not None
        return distribution, free

    # --- q held fixed while θ moves ------------------------------------------------------

    def held(self, batch: Batch, T: float) -> tuple[Tensor, Tensor]:
        """A column that stands for q, and its entropy H(q) ``(B,)``, 0 for a certain value.

        The column is ``(B, *event)`` at T=0, probabilities ``(B, K)`` where z is listed, and
        points ``(B, 2l, *event)`` where z is Gaussian.
        """
        energy, name = self.energy, self.latent
        if T == 0:
            value, F = self.distribution(batch, T)
            assert isinstance(value, Tensor)
            return value, torch.zeros_like(F)
        if self.listed:
            probs = torch.softmax(boltzmann_logits(energy.table(name, **batch), T), -1)
            return probs, torch.special.entr(probs).sum(-1)
        distribution, _ = self.distribution(batch, T)
        assert isinstance(distribution, Distribution)
        if not is_gaussian(distribution):
            raise Unsupported(
                f"averages over {name!r} of {type(energy).__name__} with its distribution held fixed need "
                f"few values or a Gaussian distribution, got {type(distribution).__name__}; declare stats and "
                "from_stats instead"
            )
        return spread_points(distribution), distribution.entropy()

    def expected(self, batch: Batch, column: Tensor, T: float) -> Tensor:
        """E_q[e] ``(B,)`` at the parameters of now, differentiable, from a held column."""
        energy, name = self.energy, self.latent
        if T == 0:
            return energy(**batch, **{name: column})
        if self.listed:
            table = energy.table(name, **batch)
            return torch.where(column > 0, column * table, 0.0).sum(-1)
        m = column.shape[1]
        rows = {k: v.repeat_interleave(m, 0) for k, v in batch.items()}
        e = energy(**rows, **{name: column.flatten(0, 1)})
        return e.view(-1, m).mean(1)


def soften(table: Tensor, T: float) -> tuple[Tensor, Tensor]:
    """Boltzmann probabilities ``(B, K)`` and free energies ``(B,)`` of a table, in one pass."""
    if math.isinf(T):
        return torch.softmax(boltzmann_logits(table, T), -1), free_energy(table, T)
    logits = boltzmann_logits(table, T)
    top = logits.amax(-1, keepdim=True)
    probs = (logits - top).exp_()
    total = probs.sum(-1, keepdim=True)
    return probs.div_(total), -T * (top + total.log()).squeeze(-1)


def spread_points(distribution: Distribution) -> Tensor:
    r"""Points ``(B, 2l, *event)`` with the mean and covariance of a Gaussian distribution, equal weights.

    >>> from torch.distributions import Normal, Independent
    >>> distribution = Independent(Normal(torch.zeros(1, 2), torch.ones(1, 2)), 1)
    >>> z = spread_points(distribution)[0]
    >>> (z.T @ z / len(z)).round(decimals=4)
    tensor([[1., 0.],
            [0., 1.]])
    """
    mean, cov = gaussian_moments(distribution)  # (B, l), (B, l, l)
    l = mean.shape[-1]
    columns = torch.linalg.cholesky(cov).transpose(-1, -2) * l**0.5  # row j: √l C_j
    return torch.cat([mean[:, None] + columns, mean[:, None] - columns], 1)
