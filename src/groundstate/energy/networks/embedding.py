r"""A code near the embedding of a row, :math:`e(x, z) = \tfrac12\|z - f(x)\|^2`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.distributions.operations import isotropic


def _example() -> EmbeddingEnergy:
    net = nn.Linear(3, 2)
    nn.init.normal_(net.weight, generator=torch.Generator().manual_seed(0))
    return EmbeddingEnergy(3, 2, net)


@registered(r"e(x, z) = \tfrac12\|z - f(x)\|^2,\ \text{an embedding}", _example)
class EmbeddingEnergy(Energy):
    r"""Squared distance of a code to the embedding of a row, :math:`e(x, z) = \tfrac12\|z - f(x)\|^2`.

    The best code is :math:`f(x)`. Two rows are alike where the code of one has low energy under the
    other: :math:`e(x, f(x')) = \tfrac12\|f(x) - f(x')\|^2`, which for unit vectors is one minus their
    cosine.

    Parameters
    ----------
    d : numbers of a row
    k : numbers of a code
    net : f, from ``(B, d)`` to ``(B, k)``
    head : a further map g of codes that only learning uses, such as SimCLR's projection

    Examples
    --------
    >>> e = EmbeddingEnergy(2, 2, nn.Identity())
    >>> e(x=torch.tensor([[1.0, 0.0]]), z=torch.tensor([[0.0, 0.0]]))
    tensor([0.5000])
    """

    gaussian = frozenset({"z"})

    def __init__(self, d: int, k: int, net: nn.Module, head: nn.Module | None = None) -> None:
        super().__init__(x=Real(d), z=Real(k))
        self.net, self.head = net, head

    def config(self) -> dict[str, Any]:
        d, k = self.spaces["x"].shape[0], self.spaces["z"].shape[0]
        return {"d": d, "k": k, "net": self.net, "head": self.head}

    def embed(self, x: Tensor) -> Tensor:
        """f(x), ``(B, k)``."""
        out: Tensor = self.net(x)
        return out

    def project(self, x: Tensor) -> Tensor:
        """g(f(x)), ``(B, p)``; without a head f(x)."""
        h = self.embed(x)
        return h if self.head is None else self.head(h)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return 0.5 * (z - self.embed(x)).square().sum(1)

    @offers.argmin("z")
    def best(self, x: Tensor) -> Tensor:
        return self.embed(x)

    @offers.conditional("z")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        return isotropic(self.embed(x), math.sqrt(T), 1)

    @offers.log_partition("z")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        size = 0.5 * self.spaces["z"].shape[0] * math.log(2 * math.pi * T)
        return torch.full((len(x),), size, dtype=x.dtype, device=x.device)


def _prototypes() -> PrototypeEnergy:
    net = nn.Linear(3, 2)
    nn.init.normal_(net.weight, generator=torch.Generator().manual_seed(0))
    energy = PrototypeEnergy(3, 2, 3, net)
    energy.centres = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.5]])
    return energy


@registered(r"e(x, y) = \|f(x) - c_y\|^2,\ \text{prototypes}", _prototypes)
class PrototypeEnergy(Energy):
    r"""Squared distance of the embedding of a row to the mean code of a label,
    :math:`e(x, y) = \|f(x) - c_y\|^2`, so that :math:`p(y\mid x) = \mathrm{softmax}(-\|f(x) - c_y\|^2)`.

    Parameters
    ----------
    d : numbers of a row
    k : numbers of a code
    m : labels
    net : f, from ``(B, d)`` to ``(B, k)``

    Attributes
    ----------
    centres : buffer, ``(m, k)``

    Examples
    --------
    >>> e = PrototypeEnergy(1, 1, 2, nn.Identity())
    >>> e.remember(torch.tensor([[0.0], [2.0], [5.0]]), torch.tensor([0, 0, 1]))
    >>> e.table("y", x=torch.tensor([[2.0]]))
    tensor([[1., 9.]])
    """

    centres: Tensor

    def __init__(self, d: int, k: int, m: int, net: nn.Module) -> None:
        super().__init__(x=Real(d), y=Finite(m))
        self.k, self.net = k, net
        self.register_buffer("centres", torch.zeros(m, k))

    def config(self) -> dict[str, Any]:
        d, m = self.spaces["x"].shape[0], len(self.centres)
        return {"d": d, "k": self.k, "m": m, "net": self.net}

    def embed(self, x: Tensor) -> Tensor:
        """f(x), ``(B, k)``."""
        out: Tensor = self.net(x)
        return out

    def project(self, x: Tensor) -> Tensor:
        """f(x): what views are compared by."""
        return self.embed(x)

    @torch.no_grad()
    def remember(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> None:
        """Take the mean codes of these rows."""
        z = self.embed(x)
        w = z.new_ones(len(z)) if weight is None else weight.to(z)
        sums = torch.zeros_like(self.centres).index_add_(0, y, z * w[:, None])
        total = torch.zeros_like(sums[:, 0]).index_add_(0, y, w)
        self.centres = sums / total.clamp_min(torch.finfo(z.dtype).tiny)[:, None]

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.embed(x) - self.centres[y]).square().sum(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return (self.embed(x)[:, None] - self.centres).square().sum(-1)
