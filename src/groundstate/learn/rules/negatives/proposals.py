r"""Where negatives are drawn from when the model itself is too dear: distributions q with known density."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, Normal

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real, Sequence, Simplex, Space
from groundstate.errors import Unsupported
from groundstate.learn.base import Batch
from groundstate.math.distributions.operations import draw as seeded_draw

ProposalLike = (
    Distribution | Callable[[Mapping[str, Tensor]], Distribution] | Mapping[str, Distribution]
)
SHUFFLED = 2**20  # spaces up to this size are drawn from without replacement


@dataclass(frozen=True)
class Drawn:
    """Candidates ``(n, B, *event)`` by name and their log density or mass, ``(n, B)``."""

    values: dict[str, Tensor]
    log_q: Tensor


class Proposer:
    """One distribution per contrasted variable for the rows of a batch.

    Parameters
    ----------
    energy : tells the spaces
    names : the contrasted variables
    batch : the rows; what is not contrasted may condition the distribution
    distribution : a distribution (one variable), a mapping from names to distributions, a function of the
        known values that returns a distribution with batch shape ``(B,)``, or None for the default:
        uniform where that exists, else a normal with the mean and twice the variance of the batch
    """

    def __init__(
        self,
        energy: Energy,
        names: tuple[str, ...],
        batch: Batch,
        distribution: ProposalLike | None = None,
    ) -> None:
        self.energy, self.names, self.batch = energy, names, batch
        self.rows = batch[names[0]].shape[0]
        self.device, self.dtype = energy.placement(batch)
        known = {k: v for k, v in batch.items() if k not in names}
        self.distributions = {name: self._distribution(name, distribution, known) for name in names}

    def _distribution(
        self, name: str, distribution: ProposalLike | None, known: Mapping[str, Tensor]
    ) -> Distribution | None:
        if distribution is None:
            return self._default(name)
        if isinstance(distribution, Mapping):
            return distribution.get(name, None) or self._default(name)
        if len(self.names) > 1:
            raise Unsupported(
                f"one proposal was given for {', '.join(self.names)}; give a mapping from names"
            )
        return distribution if isinstance(distribution, Distribution) else distribution(known)

    def _default(self, name: str) -> Distribution | None:
        space = self.energy.spaces[name]
        if has_uniform(space):
            return None
        # Distinct rows only, so that a repeated row changes nothing.
        rows = torch.unique(self.batch[name].detach(), dim=0)
        if len(rows) > 1:
            scale = (2 * rows.var(0)).sqrt().clamp(min=1e-3)
        else:
            scale = torch.ones_like(rows[0])
        return Independent(Normal(rows.mean(0), scale), rows.ndim - 1)

    def draw(self, n: int, generator: torch.Generator | None, *, shared: bool) -> Drawn:
        """``n`` candidates for every row; ``shared`` draws them once for all rows where it can."""
        values, log_q = {}, torch.zeros(n, self.rows, device=self.device, dtype=self.dtype)
        for name in self.names:
            distribution, space = self.distributions[name], self.energy.spaces[name]
            if distribution is None:
                value = self._uniform(space, n, generator, shared)
            elif distribution.batch_shape:
                value = seeded_draw(distribution, n, generator)  # (n, B, *event)
            elif shared:
                value = self._spread(seeded_draw(distribution, n, generator), n)
            else:
                flat = seeded_draw(distribution, n * self.rows, generator)
                value = flat.reshape(n, self.rows, *space.shape)
            values[name] = value
            log_q = log_q + self._log_prob(name, value)
        return Drawn(values, log_q)

    def log_prob(self, batch: Batch) -> Tensor:
        """``log q`` of the rows' own values, ``(B,)``."""
        total = torch.zeros(1, self.rows, device=self.device, dtype=self.dtype)
        for name in self.names:
            total = total + self._log_prob(name, batch[name][None])
        return total[0]

    def _log_prob(self, name: str, value: Tensor) -> Tensor:
        distribution = self.distributions[name]
        if distribution is not None:
            return distribution.log_prob(value).to(self.dtype)
        log_q = uniform_log_prob(self.energy.spaces[name], self.batch.get("lengths"))
        return torch.as_tensor(log_q, device=self.device, dtype=self.dtype)

    def _uniform(
        self, space: Space, n: int, generator: torch.Generator | None, shared: bool
    ) -> Tensor:
        if shared and len(self.names) == 1 and space.is_finite and space.size <= SHUFFLED:
            size = int(space.size)
            index = torch.randperm(size, generator=generator, device=self.device)
            index = index.repeat(-(-n // size))[:n]  # every value once before any comes twice
            return self._spread(space.enumerate(self.device, self.dtype)[index], n)
        count = n if shared else n * self.rows
        value = space.draw(count, generator=generator, device=self.device, dtype=self.dtype)
        return self._spread(value, n) if shared else value.reshape(n, self.rows, *space.shape)

    def _spread(self, value: Tensor, n: int) -> Tensor:
        return value[:, None].expand(n, self.rows, *value.shape[1:])

    def hits(self, drawn: Drawn) -> Tensor:
        """Which candidates are the row's own value, ``(n, B)``; never in a continuum."""
        same = torch.ones_like(drawn.log_q, dtype=torch.bool)
        for name in self.names:
            equal = drawn.values[name] == self.batch[name]
            if "lengths" in self.batch and isinstance(self.energy.spaces[name], Sequence):
                steps = torch.arange(equal.shape[2], device=equal.device)
                outside = steps >= self.batch["lengths"][:, None]  # (B, L)
                equal = equal | outside.reshape(*outside.shape, *(1,) * (equal.ndim - 3))
            same &= equal.flatten(2).all(-1) if equal.ndim > 2 else equal
        return same

    @property
    def is_finite(self) -> bool:
        return all(self.energy.spaces[name].is_finite for name in self.names)


def has_uniform(space: Space) -> bool:
    """Whether the space has a uniform distribution."""
    if isinstance(space, Sequence):
        return has_uniform(space.item)
    return not isinstance(space, Real) or space.bounded


def uniform_log_prob(space: Space, lengths: Tensor | None = None) -> float | Tensor:
    """Log mass or density of the uniform distribution, per row where sequences have lengths."""
    if isinstance(space, Sequence):
        item = uniform_log_prob(space.item)
        return item * (space.max_length if lengths is None else lengths)
    if isinstance(space, Simplex):
        return math.lgamma(space.n)  # 1 / volume in the first n-1 coordinates
    if isinstance(space, Real):
        assert space.low is not None and space.high is not None
        return -math.prod(space.shape) * math.log(space.high - space.low)
    return -math.log(space.size)
