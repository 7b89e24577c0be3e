"""Small energies with known answers, shared by the inference tests."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from groundstate.energy import (
    BilinearEnergy,
    Binary,
    DensityEnergy,
    Energy,
    Finite,
    LinearGaussianEnergy,
    Real,
    Sequence,
    offers,
)
from groundstate.energy.sequences.step import StepState
from groundstate.math.chains.chain import ChainFactors

F64 = torch.float64


def seed(s: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(s)


def close(a: Tensor, b: object, tol: float = 1e-6) -> None:
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype).expand_as(a), atol=tol, rtol=0)


def linear_gaussian() -> LinearGaussianEnergy:
    e = LinearGaussianEnergy(2, 1, s=2.0).double()
    with torch.no_grad():
        e.W.copy_(torch.tensor([[1.0], [2.0]]))
        e.b.copy_(torch.tensor([0.5, -1.0]))
    return e


def bilinear() -> BilinearEnergy:
    e = BilinearEnergy(2, 2).double()
    with torch.no_grad():
        e.W.copy_(torch.tensor([[1.0, -1.0], [0.5, 2.0]]))
        e.b.copy_(torch.tensor([0.1, -0.2]))
        e.c.copy_(torch.tensor([0.3, -0.4]))
    return e


class Chain3(Energy):
    """The three-step chain with unary [[0,1],[.5,.2],[1,0]] and pairwise [[0,.7],[.3,0]]."""

    def __init__(self) -> None:
        super().__init__(y=Sequence(Finite(2), 3))
        self.register_buffer("u", torch.tensor([[0.0, 1.0], [0.5, 0.2], [1.0, 0.0]], dtype=F64))
        self.register_buffer("w", torch.tensor([[0.0, 0.7], [0.3, 0.0]], dtype=F64))

    def forward(self, y: Tensor) -> Tensor:
        return ChainFactors(self.u.expand(len(y), 3, 2), self.w).energy(y)

    @offers.chain("y")
    def factors(self) -> ChainFactors:
        return ChainFactors(self.u[None], self.w)

    @offers.step("y")
    def step(self, state: StepState | None) -> tuple[Tensor, StepState]:
        state = state or StepState.start(1, 3)
        e = self.u[state.position].expand(state.rows, 2)
        return (e if state.last is None else e + self.w[state.last]), state


def gaussian2() -> DensityEnergy:
    """N(0, [[2,1],[1,2]]) with the normaliser: min energy is .25 + log Z at x1 = 1."""
    cov = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=F64)
    return DensityEnergy(torch.distributions.MultivariateNormal(torch.zeros(2, dtype=F64), cov))


class Quadratic(Energy):
    """½ xᵀPx with P the inverse of [[2,1],[1,2]], not normalised, nothing declared."""

    def __init__(self) -> None:
        super().__init__(x=Real(2))
        cov = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=F64)
        self.register_buffer("P", torch.linalg.inv(cov))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x @ self.P * x).sum(1)


class Spins(Energy):
    """A ring of binary spins with couplings, nothing declared."""

    def __init__(self, d: int, s: int = 0) -> None:
        super().__init__(x=Binary(d))
        J = torch.randn(d, d, generator=seed(s), dtype=F64)
        self.register_buffer("J", J)

    def forward(self, x: Tensor) -> Tensor:
        return (x @ self.J * x).sum(1)


class TwoModes(Energy):
    """-log of two unit normals at ±(3, 0), unnormalised: Z = 4π."""

    def __init__(self) -> None:
        super().__init__(x=Real(2))
        self.register_buffer("m", torch.tensor([[3.0, 0.0], [-3.0, 0.0]], dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return -torch.logsumexp(-0.5 * (x[:, None] - self.m).square().sum(2), 1)


class NormalNormal(Energy):
    """-log p(z) - log p(x|z) with z ~ N(0,1), x ~ N(z,1); nothing declared."""

    normalised = frozenset({"x", "z"})

    def __init__(self) -> None:
        super().__init__(x=Real(1), z=Real(1))
        self.register_buffer("unit", torch.ones((), dtype=F64))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return (0.5 * (x - z) ** 2 + 0.5 * z**2 + math.log(2 * math.pi)).sum(1)
