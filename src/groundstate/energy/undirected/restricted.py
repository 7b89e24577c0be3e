r"""Visible columns of any kind above a layer of bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Distribution, Independent
from torch.nn.functional import one_hot, softplus

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import normal, seeded
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary, Levels, Real, Space
from groundstate.energy.undirected.columns import ColumnsDistribution, slots
from groundstate.nn.blocks.initialise import linear

LISTED = 2**20  # states of a layer that are still summed one by one
_ROWS = 2**14  # states per chunk


@registered(
    r"e(x, z) = \tfrac1{2\sigma^2}\|x-b\|^2 - \tfrac1{\sigma^2}x^\top Wz - z^\top c",
    lambda: RestrictedEnergy((0, 0, 0), 4, scale=0.5),
)
class RestrictedEnergy(Energy):
    r"""A restricted Boltzmann machine with visible columns of any kind, given y if asked,

    .. math:: e(x, z) = v(x) - \phi(x)^\top Wz - z^\top c,

    with hidden bits z. A real column has :math:`v = (x-b)^2/2\sigma^2` and
    :math:`\phi = x/\sigma^2`; a bit :math:`v = -bx` and :math:`\phi = x`; a column of K categories
    :math:`v = -b_x` and for :math:`\phi` the unit vector of its category. Given one layer the
    columns or bits of the other are independent, so both conditionals and both free energies are
    exact. With y, the biases are :math:`(b, c) + f(y)` for a network f.

    Parameters
    ----------
    levels : for each column 0 (real), 2 (a bit, or a share in [0, 1]) or its number of categories
    l : hidden bits
    context : length of y; 0 for none
    net : module from ``(B, context)`` to ``(B, F + l)``; None is a linear map that starts at zero
    sigma : standard deviation of real columns given z
    scale : standard deviation of the initial W
    generator : source of the initial W

    Attributes
    ----------
    W : Parameter, ``(F, l)``, F the number of bits, reals and categories of all columns
    b : Parameter, ``(F,)``
    c : Parameter, ``(l,)``

    Examples
    --------
    >>> e = RestrictedEnergy((2, 3), 2, scale=0.0)
    >>> round(e.total().exp().item())  # 2 · 3 visible and 4 hidden states count one each
    24
    """

    unpenalised = ("b", "c")

    def __init__(
        self,
        levels: Sequence[int],
        l: int,
        *,
        context: int = 0,
        net: nn.Module | None = None,
        sigma: float = 1.0,
        scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        self_levels = tuple(int(k) for k in levels)
        if not self_levels or any(k < 0 or k == 1 for k in self_levels):
            raise ValueError(
                "levels are 0 for a real column or at least 2 for one of categories, got "
                f"{self_levels}"
            )
        x: Space = Levels(self_levels)
        if set(self_levels) == {0}:
            x = Real(len(self_levels))
        elif set(self_levels) == {2}:
            x = Binary(len(self_levels))
        given: dict[str, Space] = {"y": Real(context)} if context else {}
        super().__init__(x=x, **given, z=Binary(l))
        if not sigma > 0:
            raise ValueError(f"sigma is a standard deviation above 0, got {sigma}")
        self.levels, self.sigma, self.q = self_levels, float(sigma), context
        starts, sizes = slots(self.levels)
        F = sum(sizes)
        self._reals = [j for j, k in enumerate(self.levels) if k == 0]
        self._lists = [j for j, k in enumerate(self.levels) if k > 2]
        self._real_slots = [starts[j] for j in self._reals]
        self.W = nn.Parameter(normal(F, l, scale=scale, generator=seeded(generator)))
        self.b = nn.Parameter(torch.zeros(F))
        self.c = nn.Parameter(torch.zeros(l))
        self.net: nn.Module | None = net
        if context and net is None:
            self.net = linear(context, F + l, bias=False)
            nn.init.zeros_(self.net.weight)

    def config(self) -> dict[str, Any]:
        own = isinstance(self.net, nn.Linear) or self.net is None
        return {
            "levels": list(self.levels), "l": self.W.shape[1], "context": self.q,
            "net": None if own else self.net, "sigma": self.sigma,
        }  # fmt: skip

    # --- parts ---------------------------------------------------------------------------

    def features(self, x: Tensor) -> Tensor:
        r""":math:`\phi(x)`, ``(B, F)``."""
        if not self._reals and not self._lists:
            return x
        if not self._lists:
            if len(self._reals) == len(self.levels):
                return x / self.sigma**2
            scale = x.new_ones(len(self.levels))
            scale[self._reals] = self.sigma**-2
            return x * scale
        parts = []
        for j, k in enumerate(self.levels):
            column = x[:, j]
            if k > 2:
                parts.append(one_hot(column.long(), k).to(x.dtype))
            else:
                parts.append((column / self.sigma**2 if k == 0 else column)[:, None])
        return torch.cat(parts, 1)

    def biases(self, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """b ``(F,)`` and c ``(l,)``, or one row of each for every y."""
        if y is None or self.net is None:
            return self.b, self.c
        shift = self.net(y)  # (B, F + l)
        F = len(self.b)
        return self.b + shift[:, :F], self.c + shift[:, F:]

    def log_visible(self, x: Tensor, b: Tensor) -> Tensor:
        """−v(x) with biases b, ``(B,)``."""
        if not self._reals:
            return (self.features(x) * b).sum(-1)
        real = b[..., self._real_slots]
        square = (x[:, self._reals] - real).square().sum(-1) / (2 * self.sigma**2)
        if len(self._reals) == len(self.levels):
            return -square
        rest = torch.ones_like(self.b)
        rest[self._real_slots] = 0.0
        return (self.features(x) * b * rest).sum(-1) - square

    def log_volume(self, b: Tensor, field: Tensor | None = None, T: float = 1.0) -> Tensor:
        r""":math:`\log\int e^{(-v(x) + \phi(x)^\top m)/T}dx` with biases b and the field m = Wz."""
        field = torch.zeros_like(b) if field is None else field
        a = (b + field) / T
        starts, _ = slots(self.levels)
        bits = [starts[j] for j, k in enumerate(self.levels) if k == 2]
        total = softplus(a[..., bits]).sum(-1)
        for j in self._lists:
            total = total + a[..., starts[j] : starts[j] + self.levels[j]].logsumexp(-1)
        if self._reals:
            m, at = field[..., self._real_slots], b[..., self._real_slots]
            each = 0.5 * math.log(2 * math.pi * self.sigma**2 * T)
            total = total + ((at * m + 0.5 * m * m) / (self.sigma**2 * T) + each).sum(-1)
        return total

    def visible(
        self, inputs: Tensor, T: float = 1.0, held: tuple[Tensor, Tensor] | None = None
    ) -> ColumnsDistribution:
        """Distribution of x whose columns have these inputs b + Wz, ``(B, F)``."""
        return ColumnsDistribution(inputs, self.levels, self.sigma, T, held)

    def up(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Logits of z, ``(B, l)``."""
        return self.features(x) @ self.W + self.biases(y)[1]

    def down(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        """Inputs of the columns of x, ``(B, F)``."""
        return z @ self.W.T + self.biases(y)[0]

    # --- the energy ----------------------------------------------------------------------

    def forward(self, x: Tensor, z: Tensor, y: Tensor | None = None) -> Tensor:
        b, c = self.biases(y)
        return -((self.features(x) @ self.W + c) * z).sum(-1) - self.log_visible(x, b)

    @offers.argmin("z")
    def best_z(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return (self.up(x, y) > 0).to(x.dtype)

    @offers.argmin("x")
    def best_x(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        return self.visible(self.down(z, y)).mode

    @offers.conditional("z")
    def distribution_z(self, x: Tensor, y: Tensor | None = None, T: float = 1.0) -> Distribution:
        return Independent(Bernoulli(logits=self.up(x, y) / T, validate_args=False), 1)

    @offers.conditional("x", partial=True)
    def distribution_x(
        self,
        z: Tensor,
        y: Tensor | None = None,
        T: float = 1.0,
        x: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Distribution:
        held = None if x is None or mask is None else (x, mask)
        return self.visible(self.down(z, y), T, held)

    @offers.log_partition("z")
    def over_z(self, x: Tensor, y: Tensor | None = None, T: float = 1.0) -> Tensor:
        return self.log_visible(x, self.biases(y)[0]) / T + softplus(self.up(x, y) / T).sum(-1)

    @offers.log_partition("x")
    def over_x(self, z: Tensor, y: Tensor | None = None, T: float = 1.0) -> Tensor:
        b, c = self.biases(y)
        return (z * c).sum(-1) / T + self.log_volume(b, z @ self.W.T, T)

    @offers.log_partition("x", "z", when=lambda e: e.is_listed)
    def total(self, y: Tensor | None = None, T: float = 1.0) -> Tensor:
        """log Z by listing the smaller layer, ``(1,)``, or one for every y."""
        if y is None:
            return self._total(None, T)
        rows, index = torch.unique(y, dim=0, return_inverse=True)
        return torch.cat([self._total(row, T) for row in rows.split(1)])[index]

    def _total(self, y: Tensor | None, T: float) -> Tensor:
        hidden = 2.0 ** self.W.shape[1] <= self.spaces["x"].size
        small, over = ("z", self.over_x) if hidden else ("x", self.over_z)
        states = self.spaces[small].enumerate(self.W.device, self.W.dtype)
        parts = []
        for part in states.split(_ROWS):
            given = None if y is None else y.expand(len(part), -1)
            parts.append(torch.logsumexp(over(part, y=given, T=T), 0))
        return torch.logsumexp(torch.stack(parts), 0, keepdim=True)

    @property
    def is_listed(self) -> bool:
        """Whether log Z is a sum over a layer that can be listed."""
        return min(2.0 ** self.W.shape[1], self.spaces["x"].size) <= LISTED
