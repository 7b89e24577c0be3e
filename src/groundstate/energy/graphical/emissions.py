r"""What hidden states emit at each step: :math:`-\log p(x_t \mid z_t = k)` of every state."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.energy.spaces import Levels, Real, Space
from groundstate.math.distributions.operations import draw
from groundstate.math.graphs.elimination import NEVER, invert


class CategoricalEmission(nn.Module):
    """A table of symbol probabilities for each state.

    Parameters
    ----------
    k : states
    symbols : number of symbols
    prior : pseudo-count of every symbol
    """

    def __init__(self, k: int, symbols: int, prior: float = 0.0) -> None:
        super().__init__()
        self.k, self.symbols, self.prior = k, symbols, float(prior)
        self.space: Space = Levels((symbols,))
        self.logits = nn.Parameter(torch.zeros(k, symbols))

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "symbols": self.symbols, "prior": self.prior}

    def log_probabilities(self) -> Tensor:
        """``(K, symbols)``."""
        return torch.log_softmax(self.logits.clamp_min(NEVER), 1)

    def energies(self, x: Tensor) -> Tensor:
        return -self.log_probabilities().T[x[:, 0].long()]

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        u = torch.rand(len(z), generator=generator, device=generator.device).to(z.device)
        return invert(self.log_probabilities()[z], u)[:, None].to(self.logits.dtype)

    def stats(self, r: Tensor, x: Tensor) -> dict[str, Tensor]:
        counts = torch.zeros(self.symbols, self.k, dtype=torch.float64, device=x.device)
        return {"counts": counts.index_add(0, x[:, 0].long(), r.double()).T}

    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        counts = stats["counts"] + self.prior
        empty = counts.sum(1, keepdim=True) == 0  # a state that is never visited keeps its table
        self.logits.copy_(torch.where(empty, self.logits.double(), counts.log().clamp_min(NEVER)))


class GaussianEmission(nn.Module):
    """A Gaussian, or a mixture of m of them, for each state.

    Parameters
    ----------
    k : states
    d : features
    covariance_type : "spherical", "diag", "full" or "tied"
    m : Gaussians of each state
    reg_covar : added to the diagonal of every covariance
    """

    def __init__(
        self, k: int, d: int, covariance_type: str = "diag", m: int = 1, reg_covar: float = 1e-6
    ) -> None:
        super().__init__()
        self.k, self.d, self.m = k, d, m
        self.space: Space = Real(d)
        self.gaussians = GaussianMixtureEnergy(
            k * m, d, covariance_type, reg_covar=reg_covar, uniform=True
        )
        self.gaussians.logits.requires_grad_(False)
        self.logits = nn.Parameter(torch.zeros(k, m), requires_grad=m > 1)

    def config(self) -> dict[str, Any]:
        g = self.gaussians
        return {
            "k": self.k, "d": self.d, "covariance_type": g.covariance_type, "m": self.m,
            "reg_covar": g.reg_covar,
        }  # fmt: skip

    def log_weights(self) -> Tensor:
        """Of the Gaussians of each state, ``(K, m)``."""
        return torch.log_softmax(self.logits.clamp_min(NEVER), 1)

    def each(self, x: Tensor) -> Tensor:
        """Log density of each Gaussian times its weight, ``(M, K, m)``."""
        log_p = -self.gaussians.energies(x) + math.log(self.k * self.m)
        return log_p.view(len(x), self.k, self.m) + self.log_weights()

    def energies(self, x: Tensor) -> Tensor:
        if self.m == 1:
            return self.gaussians.energies(x) - math.log(self.k)
        return -self.each(x).logsumexp(2)

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        which = torch.zeros_like(z)
        if self.m > 1:
            u = torch.rand(len(z), generator=generator, device=generator.device).to(z.device)
            which = invert(self.log_weights()[z], u)
        return draw(self.gaussians.around(z * self.m + which), 1, generator)[0]

    def stats(self, r: Tensor, x: Tensor) -> dict[str, Tensor]:
        if self.m > 1:
            r = (r[:, :, None] * self.each(x).softmax(2)).flatten(1)
        total = r.sum(1)
        p = torch.where(
            total[:, None] > 0, r / total[:, None], 1 / r.shape[1]
        )  # weight 0: any will do
        posterior = Categorical(probs=p.clamp_min(0), validate_args=False)
        return self.gaussians.stats(total, x, posterior)

    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        n, mean, cov = self.gaussians.moments(stats)
        gone = stats["n"] <= 1e-12 * stats["n"].sum()
        if bool(gone.any()) and self.gaussians.covariance_type != "tied":
            cov = cov.clone()
            cov[gone] = self.gaussians.covariances()[gone] - _diagonal(
                cov, self.gaussians.reg_covar
            )
        self.gaussians.from_moments(n, mean, cov)
        if self.m > 1:
            counts = stats["n"].view(self.k, self.m)
            self.logits.copy_((counts + 1e-300).log().clamp_min(NEVER).to(self.logits))


def _diagonal(like: Tensor, value: float) -> Tensor | float:
    """What ``from_moments`` adds to a covariance of this shape."""
    return value * torch.eye(like.shape[-1]).to(like) if like.ndim == 3 else value
