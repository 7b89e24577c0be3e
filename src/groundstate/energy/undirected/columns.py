"""Independent columns of several kinds: bits, categories and Gaussians side by side."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.functional import logsigmoid

_LOG_2PI = math.log(2 * math.pi)


@lru_cache(maxsize=256)
def slots(levels: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """First natural parameter of every column, and how many it has: K of K > 2 categories, else 1.

    >>> slots((0, 3, 2))
    ((0, 1, 4), (1, 3, 1))
    """
    sizes = tuple(k if k > 2 else 1 for k in levels)
    starts = tuple(sum(sizes[:j]) for j in range(len(sizes)))
    return starts, sizes


class ColumnsDistribution(Distribution):
    r"""Independent columns given one vector of inputs: a bit of logit a, K categories of K logits, or
    :math:`N(a, \sigma^2)`.

    Parameters
    ----------
    inputs : ``(B, F)``
        One number for each real column and each bit, K for a column of K > 2 categories, in order.
    levels : 0 for a real column, else the number of categories
    sigma : standard deviation of the real columns
    T : temperature
    held : values ``(B, d)`` and mask of the free cells; the others are known and never drawn

    Examples
    --------
    >>> p = ColumnsDistribution(torch.zeros(1, 5), (0, 3, 2))
    >>> round(float(p.log_prob(torch.tensor([[0.0, 2.0, 1.0]]))), 4)  # N(0, 1), one of 3, one of 2
    -2.7107
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self,
        inputs: Tensor,
        levels: tuple[int, ...],
        sigma: float = 1.0,
        T: float = 1.0,
        held: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        super().__init__(inputs.shape[:-1], torch.Size([len(levels)]), validate_args=False)
        self.inputs, self.levels, self.sigma, self.T, self.held = inputs, levels, sigma, T, held
        starts, _ = slots(levels)
        self._bits = [j for j, k in enumerate(levels) if k == 2]
        self._reals = [j for j, k in enumerate(levels) if k == 0]
        self._lists = [(j, starts[j], k) for j, k in enumerate(levels) if k > 2]

    def _picked(self, columns: list[int]) -> Tensor:
        starts = slots(self.levels)[0]
        return self.inputs[..., [starts[j] for j in columns]]

    @property
    def mean(self) -> Tensor:
        """Expected value; of a column of categories the most probable one."""
        out = self.inputs.new_zeros(*self.batch_shape, len(self.levels))
        out[..., self._bits] = torch.sigmoid(self._picked(self._bits) / self.T)
        out[..., self._reals] = self._picked(self._reals)
        for j, at, k in self._lists:
            out[..., j] = self.inputs[..., at : at + k].argmax(-1).to(out.dtype)
        return self._kept(out)

    @property
    def mode(self) -> Tensor:
        out = self.mean
        out[..., self._bits] = (self._picked(self._bits) > 0).to(out.dtype)
        return self._kept(out)

    def _kept(self, drawn: Tensor) -> Tensor:
        if self.held is None:
            return drawn
        value, free = self.held
        return torch.where(free, drawn, value)

    def draw(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` draws, ``(n, *batch, d)``."""
        a = self.inputs
        place: dict[str, Any] = {"device": a.device, "dtype": a.dtype}
        size = (n, *self.batch_shape, len(self.levels))
        u = torch.rand(size, generator=generator, **place)
        out = torch.zeros_like(u)
        if self._bits:
            p = torch.sigmoid(self._picked(self._bits) / self.T)
            out[..., self._bits] = (u[..., self._bits] < p).to(u.dtype)
        for j, at, k in self._lists:
            cumulative = torch.softmax(a[..., at : at + k] / self.T, -1).cumsum(-1)
            above = (u[..., j] * cumulative[..., -1])[..., None] >= cumulative
            out[..., j] = above.sum(-1).clamp_max(k - 1).to(u.dtype)
        if self._reals:
            xi = torch.randn((*size[:-1], len(self._reals)), generator=generator, **place)
            width = self.sigma * math.sqrt(self.T)
            out[..., self._reals] = self._picked(self._reals) + width * xi
        return self._kept(out)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        drawn = self.draw(shape.numel())
        return drawn.reshape(*shape, *self.batch_shape, *self.event_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        a, T = self.inputs, self.T
        parts = value.new_zeros(torch.broadcast_shapes(value.shape[:-1], self.batch_shape))
        if self._bits:
            logits, x = self._picked(self._bits) / T, value[..., self._bits]
            parts = parts + (x * logits + logsigmoid(-logits)).sum(-1)
        if self._reals:
            gap = (value[..., self._reals] - self._picked(self._reals)) / self.sigma
            each = 0.5 * (gap.square() / T + _LOG_2PI) + math.log(self.sigma) + 0.5 * math.log(T)
            parts = parts - each.sum(-1)
        for j, at, k in self._lists:
            logits = torch.log_softmax(a[..., at : at + k] / T, -1)
            index = value[..., j].long()
            logits = logits.expand(*index.shape, k)
            parts = parts + logits.gather(-1, index[..., None])[..., 0]
        return parts
