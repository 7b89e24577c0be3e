"""Small energies with known distributions, shared by the tests of the samplers."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from groundstate.energy import BilinearEnergy, Binary, Energy, Finite, Real, Sequence, Simplex


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Normal(Energy):
    """``e = x^T A x / 2``."""

    def __init__(self, A: Tensor | None = None, low: float | None = None) -> None:
        A = torch.eye(1, dtype=torch.float64) if A is None else A.double()
        super().__init__(x=Real(len(A), low=low))
        self.A: Tensor
        self.register_buffer("A", A)

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * torch.einsum("bi,ij,bj->b", x, self.A, x)


class Shifted(Energy):
    """``x ~ N(mean of the row, 1)``: rows have different distributions."""

    def __init__(self) -> None:
        super().__init__(c=Real(1), x=Real(1))

    def forward(self, c: Tensor, x: Tensor) -> Tensor:
        return 0.5 * (x - c).square().sum(-1)


class Spins(Energy):
    """A ring of bits that like to agree."""

    def __init__(self, d: int = 4, strength: float = 0.8, field: float = 0.3) -> None:
        super().__init__(x=Binary(d))
        self.strength, self.field = strength, field

    def forward(self, x: Tensor) -> Tensor:
        agree = (x == x.roll(1, 1)).to(x.dtype).sum(1)
        return -self.strength * agree - self.field * x.sum(1)


class Word(Energy):
    """Sequences with an energy that is no chain: neighbours and the two ends talk."""

    context = ("lengths",)

    def __init__(self, k: int = 3, length: int = 3) -> None:
        super().__init__(y=Sequence(Finite(k), length))

    def forward(self, y: Tensor, lengths: Tensor | None = None) -> Tensor:
        n = y.shape[1]
        lengths = torch.full((len(y),), n) if lengths is None else lengths
        inside = torch.arange(n) < lengths[:, None]
        own = torch.where(inside, 0.4 * y.double(), 0.0).sum(1)
        last = y.gather(1, (lengths - 1)[:, None])[:, 0]
        return own + 0.7 * (y[:, 0] == last).double()


class Dirichlet(Energy):
    def __init__(self, alpha: Tensor) -> None:
        super().__init__(x=Simplex(len(alpha)))
        self.alpha: Tensor
        self.register_buffer("alpha", alpha.double())

    def forward(self, x: Tensor) -> Tensor:
        return -((self.alpha - 1) * x.log()).sum(-1)


def bilinear() -> BilinearEnergy:
    """The worked two-layer example."""
    e = BilinearEnergy(2, 2).double()
    e.W.data = torch.tensor([[1.0, -1.0], [0.5, 2.0]]).double()
    e.b.data = torch.tensor([0.1, -0.2]).double()
    e.c.data = torch.tensor([0.3, -0.4]).double()
    return e


def chi_square_p(counts: Tensor, p: Tensor) -> float:
    """p-value of counts against probabilities."""
    from scipy.stats import chisquare

    keep = p > 0
    assert not counts[~keep].any()
    expected = p[keep] / p[keep].sum() * counts.sum()
    return float(chisquare(counts[keep].numpy(), expected.numpy()).pvalue)


def state_counts(energy: Energy, name: str, draws: Tensor) -> tuple[Tensor, Tensor]:
    """Counts of a finite variable's draws ``(n, *event)`` and their Boltzmann probabilities."""
    every = energy.spaces[name].enumerate(dtype=draws.dtype)
    p = torch.softmax(-energy(**{name: every}).detach().double(), 0)
    flat, listed = draws.reshape(len(draws), -1), every.reshape(len(every), -1)
    counts = (flat[:, None] == listed).all(-1).sum(0)
    return counts.double(), p


def mala_acceptance(eta: float) -> float:
    """Mean acceptance of adjusted Langevin on N(0, 1), by integration on a grid."""
    x = torch.linspace(-8, 8, 801, dtype=torch.float64)
    xi = torch.linspace(-8, 8, 801, dtype=torch.float64)
    a, b = torch.meshgrid(x, xi, indexing="ij")
    new = a - eta * a + math.sqrt(2 * eta) * b
    back = a - new + eta * new
    log_a = 0.5 * (a**2 - new**2) + 0.5 * b**2 - back**2 / (4 * eta)
    weight = torch.exp(-0.5 * (a**2 + b**2))
    return float((weight * log_a.clamp_max(0).exp()).sum() / weight.sum())
