r"""A distribution of rankings: choose the best item, then the best of those that are left, and so on."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints


class PlackettLuce(Distribution):
    r"""Rankings by repeated choice,
    :math:`p(r) = \prod_j e^{s_{r_j}} / \sum_{i \ge j} e^{s_{r_i}}`.

    A ranking lists items from best to worst. One with fewer places than items tells the first of
    them only, and its probability is that of all rankings that begin like this. What repeats an
    item has probability zero.

    Parameters
    ----------
    logits : scores s of the K items, ``(*batch, K)``

    Examples
    --------
    >>> distribution = PlackettLuce(torch.tensor([1.0, 2.0, 3.0]).log())
    >>> distribution.log_prob(torch.tensor([2, 1, 0])).exp()  # 3/6 · 2/3 · 1
    tensor(0.3333)
    >>> distribution.mode.tolist(), distribution.log_prob(torch.tensor([2])).exp()
    ([2, 1, 0], tensor(0.5000))
    """

    arg_constraints: dict[str, Any] = {}
    has_rsample = False

    def __init__(self, logits: Tensor, validate_args: bool | None = None) -> None:
        self.logits = logits
        super().__init__(logits.shape[:-1], logits.shape[-1:], validate_args=False)

    @property
    def support(self) -> Any:
        return constraints.independent(constraints.nonnegative_integer, 1)

    def expand(self, batch_shape: Any, _instance: Any = None) -> PlackettLuce:
        return PlackettLuce(self.logits.expand(*batch_shape, self.logits.shape[-1]))

    @property
    def mode(self) -> Tensor:
        """Items by falling score; equal scores keep the order of their indices."""
        return self.logits.argsort(dim=-1, descending=True, stable=True)

    def log_prob(self, value: Tensor) -> Tensor:
        value = value.long()
        shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        k = self.logits.shape[-1]
        s = self.logits.expand(*shape, k)
        value = value.expand(*shape, value.shape[-1])
        known = ((value >= 0) & (value < k)).all(-1)
        at = value.clamp(0, k - 1)
        times = torch.zeros(s.shape, dtype=s.dtype, device=s.device)
        times = times.scatter_add(-1, at, torch.ones_like(at, dtype=s.dtype))
        chosen = s.gather(-1, at)  # (*batch, places)
        left = torch.where(times > 0, -math.inf, s)
        rest = _logsumexp(left)[..., None]  # of items without a place
        whole = torch.logcumsumexp(torch.cat([rest, chosen.flip(-1)], -1), -1)[..., 1:]
        result = chosen.sum(-1) - whole.sum(-1)
        return torch.where(known & (times <= 1).all(-1), result, -math.inf)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Rankings of all items: scores with Gumbel noise, sorted."""
        size = self._extended_shape(torch.Size(sample_shape))
        u = torch.rand(size, dtype=self.logits.dtype, device=self.logits.device)
        tiny = torch.finfo(u.dtype).tiny
        noise = -(-u.clamp_min(tiny).log()).clamp_min(tiny).log()
        return (self.logits + noise).argsort(dim=-1, descending=True)


def _logsumexp(s: Tensor) -> Tensor:
    """Where every entry is -inf the gradient of torch's is NaN; here it is zero."""
    empty = torch.isinf(s).all(-1)
    safe = torch.where(empty[..., None], 0.0, s)
    return torch.where(empty, torch.finfo(s.dtype).min, torch.logsumexp(safe, -1))
