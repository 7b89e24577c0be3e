r"""Codes of codes: :math:`p(z) = p(z_L)\prod_{l<L} p(z_l \mid z_{l+1})`, the rows decoded from
:math:`z_1`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from groundstate.energy.latent.deep.priors import LOG_2PI, Prior, diagonal_log_prob
from groundstate.math.divergences.kl import LOGVAR


class HierarchicalPrior(Prior):
    r""":math:`p(z) = N(z_L; 0, I)\prod_{l<L} N(z_l; \mu_l(z_{l+1}), \mathrm{diag}\,\sigma_l^2(z_{l+1}))`.

    The code is all levels side by side, :math:`z = (z_1, \dots, z_L)`.

    Parameters
    ----------
    sizes : lengths of :math:`z_1, \dots, z_L`
    nets : for l = 1..L-1 a network from ``(B, sizes[l])`` of the level above to means and log variances
        ``(B, 2 sizes[l - 1])``

    Examples
    --------
    >>> prior = HierarchicalPrior((3, 1), [nn.Linear(1, 6)])
    >>> prior.draw(5, generator=torch.Generator()).shape, prior.log_prob(torch.zeros(2, 4)).shape
    (torch.Size([5, 4]), torch.Size([2]))
    """

    def __init__(self, sizes: Sequence[int], nets: Sequence[nn.Module]) -> None:
        super().__init__()
        self.sizes = [int(k) for k in sizes]
        if len(nets) != len(self.sizes) - 1:
            raise ValueError(
                f"{len(self.sizes)} levels have {len(self.sizes) - 1} networks between them, got "
                f"{len(nets)}"
            )
        self.nets = nn.ModuleList(nets)
        self.k = sum(self.sizes)
        self.register_buffer("zero", torch.zeros(()))  # knows dtype and device

    def levels(self, z: Tensor) -> tuple[Tensor, ...]:
        """:math:`z_1, \\dots, z_L` of codes ``(..., k)``."""
        return z.split(self.sizes, -1)

    def between(self, level: int, above: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of level 0..L-2 (from the bottom) given the one above it."""
        mean, logvar = self.nets[level](above.reshape(-1, above.shape[-1])).chunk(2, -1)
        shape = (*above.shape[:-1], self.sizes[level])
        return mean.reshape(shape), logvar.reshape(shape).clamp(-LOGVAR, LOGVAR)

    def log_probs(self, z: Tensor) -> list[Tensor]:
        """The terms ``(...)`` of every level from the bottom; the last is that of the top."""
        levels = self.levels(z)
        terms = [
            diagonal_log_prob(low, *self.between(i, high))
            for i, (low, high) in enumerate(pairwise(levels))
        ]
        top = levels[-1]
        return [*terms, -0.5 * (top.square().sum(-1) + self.sizes[-1] * LOG_2PI)]

    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        return torch.stack(self.log_probs(z)).sum(0)

    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        like, width = self._like(), math.sqrt(T)
        noise = torch.randn(n, self.k, generator=generator, device=generator.device)
        each = noise.to(like.device, like.dtype).split(self.sizes, 1)
        levels = [each[-1] * width]
        for i in range(len(self.sizes) - 2, -1, -1):
            mean, logvar = self.between(i, levels[0])
            levels.insert(0, mean + each[i] * (0.5 * logvar).exp() * width)
        return torch.cat(levels, 1)


class FromBottom(nn.Module):
    """A network that decodes the lowest level of a code: it reads the first ``first`` of ``k`` numbers,
    and what stands behind them (a condition).

    >>> FromBottom(nn.Linear(2, 3), 2, 6)(torch.zeros(4, 6)).shape
    torch.Size([4, 3])
    """

    def __init__(self, net: nn.Module, first: int, k: int) -> None:
        super().__init__()
        self.net, self.first, self.k = net, first, k

    def forward(self, z: Tensor) -> Tensor:
        found: Tensor = self.net(torch.cat([z[:, : self.first], z[:, self.k :]], 1))
        return found
