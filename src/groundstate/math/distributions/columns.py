r"""Distributions of rows whose columns are independent: bins of numbers, levels of categories, both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.nn.functional import logsigmoid

from groundstate.errors import ShapeError


class _Rows(Distribution, ABC):
    """Batch ``(B,)``, event ``(d,)``; ``draw`` takes an explicit generator."""

    arg_constraints: dict[str, Any] = {}

    def __init__(self, rows: int, d: int) -> None:
        super().__init__(torch.Size([rows]), torch.Size([d]), validate_args=False)

    @property
    def support(self) -> Any:
        return constraints.real_vector

    @abstractmethod
    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, B, d)``."""

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        seed = torch.randint(2**62, ()).item()  # torch's contract: sample reads the global stream
        drawn = self.draw(shape.numel(), torch.Generator().manual_seed(int(seed)))
        return drawn.reshape(shape + self.batch_shape + self.event_shape)


class DiscretizedLogistic(_Rows):
    r"""Numbers on a grid of [−1, 1] with the mass of a logistic distribution around each,

    .. math:: P(x) = \sigma\!\big(\tfrac{x + h - \mu}{s}\big) - \sigma\!\big(\tfrac{x - h - \mu}{s}\big),
              \qquad h = \tfrac{1}{\text{bins} - 1};

    the first and the last bin take the tails, so that the masses sum to one.

    Parameters
    ----------
    loc, scale : μ and s, each ``(B, d)``
    bins : values of the grid :math:`-1 + 2k/(\text{bins} - 1)`

    Examples
    --------
    >>> p = DiscretizedLogistic(torch.zeros(1, 1).double(), torch.full((1, 1), 0.1).double())
    >>> round(p.log_prob(torch.zeros(1, 1).double()).item(), 6)
    -3.931954
    """

    def __init__(self, loc: Tensor, scale: Tensor, bins: int = 256) -> None:
        if bins < 2:
            raise ValueError(f"a grid has at least two bins, got bins={bins}")
        self.loc, self.scale, self.bins = loc, scale.expand_as(loc), bins
        super().__init__(*loc.shape)

    @property
    def mean(self) -> Tensor:
        """μ, cut to the grid's range: the mean of the logistic before it is binned."""
        return self.loc.clamp(-1.0, 1.0)

    @property
    def mode(self) -> Tensor:
        return self._grid(self.loc)

    def _grid(self, x: Tensor) -> Tensor:
        steps = 0.5 * (self.bins - 1)
        return (x.clamp(-1.0, 1.0) * steps + steps).round() / steps - 1.0

    def log_prob(self, value: Tensor) -> Tensor:
        h = 1.0 / (self.bins - 1)
        above = (value + h - self.loc) / self.scale
        below = (value - h - self.loc) / self.scale
        # σ(a) − σ(b) = σ(a) σ(−b) (1 − e^{b−a}): no cancellation in the tails
        inner = logsigmoid(above) + logsigmoid(-below) + torch.log(-torch.expm1(below - above))
        first, last = value < -1.0 + h, value > 1.0 - h
        return torch.where(
            first, logsigmoid(above), torch.where(last, logsigmoid(-below), inner)
        ).sum(-1)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        size = (n, *self.loc.shape)
        u = torch.rand(size, generator=generator, dtype=torch.float64, device=generator.device)
        logistic = torch.logit(u, eps=1e-12).to(self.loc)
        return self._grid(self.loc + self.scale * logistic)


class LevelColumns(_Rows):
    r"""Categorical columns whose values are level numbers 0, 1, …, stored as floating numbers,
    :math:`P(x_j = k) = \operatorname{softmax}(a_j)_k`.

    Parameters
    ----------
    logits : the columns' logits side by side, ``(B, Σ levels)``
    levels : number of levels of each column

    Examples
    --------
    >>> p = LevelColumns(torch.zeros(1, 5), [2, 3])
    >>> round(p.log_prob(torch.tensor([[1.0, 2.0]])).exp().item(), 4)
    0.1667
    """

    def __init__(self, logits: Tensor, levels: Sequence[int]) -> None:
        if logits.shape[-1] != sum(levels) or min(levels, default=1) < 1:
            raise ShapeError(
                f"columns of {list(levels)} levels need logits (B, {sum(levels)}), "
                f"got {tuple(logits.shape)}"
            )
        self.levels = tuple(levels)
        widest, start = max(levels, default=1), 0
        places = []  # the place behind the last logit holds −inf for levels that a column lacks
        for k in self.levels:
            places.append([*range(start, start + k), *[sum(levels)] * (widest - k)])
            start += k
        index = torch.tensor(places, device=logits.device).reshape(len(self.levels), widest)
        padded = torch.cat([logits, logits.new_full((len(logits), 1), -torch.inf)], 1)
        self.logits = padded[:, index].log_softmax(-1)  # (B, d, K)
        super().__init__(len(logits), len(self.levels))

    @property
    def mode(self) -> Tensor:
        return self.logits.argmax(-1).to(self.logits.dtype)

    @property
    def mean(self) -> Tensor:
        """The most probable level: numbers of categories have no mean."""
        return self.mode

    def log_prob(self, value: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(value.shape, self.logits.shape[:-1])
        chosen = value.expand(shape).long().unsqueeze(-1)
        return self.logits.expand(*shape, -1).gather(-1, chosen).squeeze(-1).sum(-1)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        rows, d, k = self.logits.shape
        u = torch.rand((n, rows, d, k), generator=generator, device=generator.device)
        u = u.to(self.logits)
        tiny = torch.finfo(self.logits.dtype).tiny
        gumbel = -(-u.clamp_min(tiny).log()).clamp_min(tiny).log()
        return (self.logits + gumbel).argmax(-1).to(self.logits.dtype)


class Joined(_Rows):
    """Independent groups of columns put together: ``parts`` are (columns, distribution of them).

    Examples
    --------
    >>> real = torch.distributions.Independent(torch.distributions.Normal(torch.zeros(1, 1), 1.0), 1)
    >>> p = Joined([([0], real), ([1], LevelColumns(torch.zeros(1, 2), [2]))])
    >>> round(p.log_prob(torch.tensor([[0.0, 1.0]])).item(), 4)  # −½ log 2π − log 2
    -1.6121
    """

    def __init__(self, parts: Sequence[tuple[Sequence[int], Distribution]]) -> None:
        self.parts = [(list(columns), part) for columns, part in parts]
        order = [c for columns, _ in self.parts for c in columns]
        if sorted(order) != list(range(len(order))):
            raise ShapeError(f"the parts hold columns {order}, expected each of 0, 1, ... once")
        self._back = sorted(range(len(order)), key=order.__getitem__)
        super().__init__(self.parts[0][1].batch_shape[0], len(order))

    def _merge(self, values: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(values), -1)[..., self._back]

    @property
    def mean(self) -> Tensor:
        return self._merge([part.mean for _, part in self.parts])

    @property
    def mode(self) -> Tensor:
        return self._merge([part.mode for _, part in self.parts])

    def log_prob(self, value: Tensor) -> Tensor:
        each = [part.log_prob(value[..., columns]) for columns, part in self.parts]
        return torch.stack(each).sum(0)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        from groundstate.math.distributions.operations import draw

        return self._merge([draw(part, n, generator) for _, part in self.parts])
