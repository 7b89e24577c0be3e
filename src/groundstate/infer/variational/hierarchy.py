r"""Posteriors of codes with levels, :math:`q(z_1, \dots, z_L \mid x)`, level by level.

========= ============================================================================================
family    factors
========= ============================================================================================
BottomUp  :math:`q(z_1 \mid x)\prod_l q(z_{l+1} \mid z_l)`
Ladder    :math:`q(z_L \mid x)\prod_l q(z_l \mid z_{l+1}, x)`, from the top down as the prior runs
========= ============================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.energy.latent.deep.priors import diagonal_log_prob
from groundstate.energy.spaces import Space
from groundstate.errors import Unsupported
from groundstate.infer.variational.codes import CodeDraws, CodeFamily, _randn
from groundstate.infer.variational.families import Gaussian
from groundstate.math.divergences.kl import LOGVAR

Pair = tuple[Tensor, Tensor]


class _Levels(CodeFamily, nn.Module):
    """Normal levels, each given one neighbour; a subclass says in which order.

    Parameters
    ----------
    sizes : lengths of :math:`z_1, \\dots, z_L`
    nets : L - 1 networks between neighbours
    """

    def __init__(self, sizes: Sequence[int], nets: Sequence[nn.Module]) -> None:
        nn.Module.__init__(self)
        self.sizes = [int(k) for k in sizes]
        self.nets = nn.ModuleList(nets)

    def config(self) -> dict[str, Any]:
        return {"sizes": list(self.sizes), "nets": list(self.nets)}

    def reason_against(self, space: Space) -> str | None:
        return Gaussian().reason_against(space)

    @property
    def order(self) -> list[int]:
        """Levels in the order in which they are drawn."""
        raise TypeError(f"{type(self).__name__} must define order")

    def moments(self, q: Any, level: int, before: Tensor | None) -> Pair:
        """Mean and log variance of a level given the one drawn before it."""
        raise TypeError(f"{type(self).__name__} must define moments(q, level, before)")

    def _net(self, at: int, size: int, before: Tensor) -> Pair:
        out = self.nets[at](before.reshape(-1, before.shape[-1]))
        mean, logvar = out.reshape(*before.shape[:-1], 2 * size).chunk(2, -1)
        return mean, logvar.clamp(-LOGVAR, LOGVAR)

    def draws(self, q: Any, n: int = 1, generator: torch.Generator | None = None) -> CodeDraws:
        like = q.new_empty(len(q), sum(self.sizes))
        return self.place_noise(q, _randn(n, like, generator))

    def place_noise(self, q: Any, noise: Tensor) -> CodeDraws:
        z, pairs = self._placed(q, noise)
        return CodeDraws(z, lambda: torch.stack(self._logs(z, pairs)).sum(0))

    def _placed(self, q: Any, noise: Tensor) -> tuple[Tensor, list[Pair]]:
        each = noise.split(self.sizes, -1)
        levels: list[Any] = [None] * len(self.sizes)
        pairs: list[Any] = [None] * len(self.sizes)
        before = None
        for i in self.order:
            mean, logvar = pairs[i] = self.moments(q, i, before)
            before = levels[i] = mean + (0.5 * logvar).exp() * each[i]
        return torch.cat(levels, -1), pairs

    def _logs(self, z: Tensor, pairs: Sequence[Pair]) -> list[Tensor]:
        levels = z.split(self.sizes, -1)
        return [diagonal_log_prob(v, *pair) for v, pair in zip(levels, pairs, strict=True)]

    def log_probs(self, q: Any, z: Tensor) -> list[Tensor]:
        """log q of every level from the bottom, ``(..., B)`` each."""
        levels, before = z.split(self.sizes, -1), None
        pairs: list[Any] = [None] * len(self.sizes)
        for i in self.order:
            pairs[i] = self.moments(q, i, before)
            before = levels[i]
        return self._logs(z, pairs)

    def log_prob(self, q: Any, z: Tensor) -> Tensor:
        return torch.stack(self.log_probs(q, z)).sum(0)

    def centre(self, q: Any) -> Tensor:
        zero = q.new_zeros(1, len(q), sum(self.sizes))
        return self._placed(q, zero)[0][0]

    def distribution(self, space: Space, params: Tensor) -> Distribution:
        raise Unsupported("a code with levels is drawn and weighed by its family, see `draws`")


class BottomUp(_Levels):
    r""":math:`q(z_1 \mid x)\prod_l q(z_{l+1} \mid z_l)`: the encoder gives the numbers of the lowest level,
    a network from each level those of the next."""

    @property
    def order(self) -> list[int]:
        return list(range(len(self.sizes)))

    def size(self, space: Space) -> int:
        return 2 * self.sizes[0]

    def moments(self, q: Any, level: int, before: Tensor | None) -> Pair:
        if before is None:
            mean, logvar = q.chunk(2, -1)
            return mean, logvar.clamp(-LOGVAR, LOGVAR)
        return self._net(level - 1, self.sizes[level], before)


class Ladder(_Levels):
    r""":math:`q(z_L \mid x)\prod_l q(z_l \mid z_{l+1}, x)` from the top down: what the encoder says of a
    level, :math:`N(\hat\mu_l, \hat\sigma_l^2)`, times what the level above says of it,
    :math:`N(\tilde\mu_l, \tilde\sigma_l^2)`, so that precisions add up (Sønderby et al. 2016)."""

    @property
    def order(self) -> list[int]:
        return list(range(len(self.sizes) - 1, -1, -1))

    def size(self, space: Space) -> int:
        return 2 * sum(self.sizes)

    def moments(self, q: Any, level: int, before: Tensor | None) -> Pair:
        means, logvars = q.chunk(2, -1)
        mean = means.split(self.sizes, -1)[level]
        logvar = logvars.split(self.sizes, -1)[level].clamp(-LOGVAR, LOGVAR)
        if before is None:
            return mean, logvar
        above, spread = self._net(level, self.sizes[level], before)
        precision = (-logvar).exp() + (-spread).exp()
        return (mean * (-logvar).exp() + above * (-spread).exp()) / precision, -precision.log()
