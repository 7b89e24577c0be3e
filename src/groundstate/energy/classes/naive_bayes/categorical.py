r"""Naive Bayes over categories, :math:`e(x, y) = -\log\pi_y - \sum_j\log p_{yj}(x_j)`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import embedding_bag

from groundstate.compute.foreign.torch import functorch_active
from groundstate.energy import spaces
from groundstate.energy.abilities import offers
from groundstate.energy.classes.naive_bayes.joint import LOWEST, JointClassEnergy
from groundstate.energy.registering import registered

_MANY = 1 << 22  # numbers that are looked up at a time


def _example() -> CategoricalClassEnergy:
    energy = CategoricalClassEnergy(2, (3, 3), alpha=0.0)
    with torch.no_grad():
        energy.logits.copy_(torch.tensor([0.3, -0.2]))
        energy.W.copy_(torch.linspace(-1, 1, 12).reshape(2, 6))
    return energy


@registered(r"e(x, y) = -\log\pi_y - \sum_j\log p_{yj}(x_j)", _example)
class CategoricalClassEnergy(JointClassEnergy):
    r"""Independent categories given the class, :math:`e(x, y) = -\log\pi_y - \sum_j\log p_{yj}(x_j)`.

    The factor of a missing category, written −1, is left out.

    Parameters
    ----------
    k : number of classes
    sizes : number of categories of every feature
    alpha : counts added to every category when learning
    prior : ``(k,)`` probabilities that are kept, or None to learn them

    Attributes
    ----------
    W : Parameter, ``(k, sum(sizes))``; unnormalised log probabilities, feature after feature

    Examples
    --------
    >>> e = CategoricalClassEnergy(1, (3,))
    >>> e.from_stats(e.stats(None, x=torch.tensor([[0], [0], [2]]), y=torch.zeros(3).long()))
    >>> e.log_p().exp().round(decimals=4).tolist()
    [[0.5, 0.16670000553131104, 0.33329999446868896]]
    """

    def __init__(
        self,
        k: int,
        sizes: Sequence[int],
        alpha: float = 1.0,
        prior: Sequence[float] | Tensor | None = None,
    ) -> None:
        self.sizes = tuple(int(s) for s in sizes)
        super().__init__(k, spaces.Sequence(spaces.Finite(max(self.sizes)), len(self.sizes)), prior)
        self.alpha, self._sizes = alpha, np.array(self.sizes)
        self.W = nn.Parameter(torch.zeros(k, sum(self.sizes)))
        each = torch.tensor(self.sizes, device="cpu")
        self.register_buffer("size", each, persistent=False)
        self.register_buffer("start", each.cumsum(0) - each, persistent=False)
        group = torch.from_numpy(np.arange(len(each)).repeat(self._sizes))
        self.register_buffer("group", group, persistent=False)

    size: Tensor
    start: Tensor
    group: Tensor

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "sizes": list(self.sizes), "alpha": self.alpha, **self.kept_prior()}

    def log_p(self) -> Tensor:
        """Log probability of every category in every class, ``(k, sum(sizes))``."""
        top = self.W.detach().amax(1, keepdim=True)
        odds = (self.W - top).exp()
        total = odds.new_zeros(self.k, len(self.sizes)).index_add(1, self.group, odds)
        return self.W - (top + total.log())[:, self.group]

    def log_likelihood(self, x: Tensor) -> Tensor:
        each, known = self.log_p().T.contiguous(), self._all_known(x)  # (sum(sizes), k)
        at = x + self.start if known else torch.minimum(x, self.size - 1) + self.start
        if known and each.dtype == torch.float32:  # in double precision it is several times slower
            return embedding_bag(at, each, mode="sum")
        if not known and _some_missing(x):
            at = torch.where(x < 0, len(each), at)
            each = torch.cat([each, each.new_zeros(1, self.k)])
        some = max(1, _MANY // max(1, at.shape[1] * self.k))  # rows at a time
        parts = [
            each.index_select(0, rows.reshape(-1)).reshape(*rows.shape, self.k).sum(1)
            for rows in at.split(some)
        ]
        ll = parts[0] if len(parts) == 1 else torch.cat(parts)
        if known:
            return ll
        return torch.where((x >= self.size).sum(1, keepdim=True) > 0, -math.inf, ll)  # sizes differ

    def _all_known(self, x: Tensor) -> bool:
        """Whether rows of the CPU hold known categories alone: their terms are look-ups."""
        if x.device.type != "cpu" or functorch_active() or not len(x):
            return False
        codes = x.numpy()
        return bool(codes.min() >= 0 and (codes < self._sizes).all())

    def draw_x(self, y: Tensor, generator: torch.Generator) -> Tensor:
        p = self.log_p().detach().exp().to(generator.device)
        parts = [
            torch.multinomial(block[y.to(block.device)], 1, True, generator=generator)
            for block in p.split(self.sizes, 1)
        ]
        return torch.cat(parts, 1).to(y.device)

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, y: Tensor | Distribution
    ) -> dict[str, Tensor]:
        """Rows per class and how often every category was seen in it."""
        width = self.W.shape[1]
        r = self.per_class(y, weights)  # (B, k)
        there = (x >= 0).reshape(-1) if _some_missing(x) else slice(None)  # (B·d,)
        if isinstance(y, Distribution):
            seen = r.new_zeros(width, self.k)
            at = (x + self.start).reshape(-1)[there]
            seen.index_add_(0, at, r.repeat_interleave(x.shape[1], 0)[there])
            return {"n": r.sum(0), "x": seen.T.contiguous()}
        at = (x + self.start + width * y[:, None]).reshape(-1)[there]
        w = None if weights is None else weights.double().repeat_interleave(x.shape[1])[there]
        seen = torch.bincount(at, w, minlength=width * self.k)
        return {"n": r.sum(0), "x": seen.double().reshape(self.k, width)}

    @offers.from_stats
    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Smoothed shares of every category."""
        self._keep(stats)
        counts = stats["x"] + self.alpha
        total = counts.new_zeros(self.k, len(self.sizes)).index_add(1, self.group, counts)
        share = counts / total.clamp_min(1e-300)[:, self.group]
        self.W.copy_(share.log().clamp_min(LOWEST))


def _some_missing(x: Tensor) -> bool:
    return x.numel() > 0 and int(x.amin()) < 0
