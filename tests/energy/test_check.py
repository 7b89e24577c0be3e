"""gradcheck finds what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Normal

from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    ChainEnergy,
    Energy,
    LinearEnergy,
    Real,
    SquaredEnergy,
    StepState,
    gradcheck,
    offers,
)
from groundstate.energy.check import Mismatch
from groundstate.math.chains.chain import ChainFactors


class WrongTable(LinearEnergy):
    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return self.scores(x)  # the sign of a score


class WrongArgmin(SquaredEnergy):
    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.predict(x) + 0.1


class WrongDiscreteArgmin(BilinearEnergy):
    @offers.argmin("z")
    def best_z(self, x: Tensor) -> Tensor:
        return (self.up(x) < 0).to(x.dtype)


class WrongConditional(CentroidEnergy):
    @offers.conditional("z")
    def responsibilities(self, x: Tensor, T: float = 1.0) -> Categorical:
        return Categorical(logits=-self.energies(x))  # forgets T


class WrongGaussian(SquaredEnergy):
    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        return torch.distributions.Independent(Normal(self.predict(x), T), 1)  # not √T


class WrongNormaliser(SquaredEnergy):
    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        return x.new_full((x.shape[0],), 1.0)


class WrongChain(ChainEnergy):
    @offers.chain("y")
    def factors(self, x: Tensor, lengths: Tensor | None = None) -> ChainFactors:
        return ChainFactors(x @ self.W.T, self.A + 1, lengths)

    def forward(self, x: Tensor, y: Tensor, lengths: Tensor | None = None) -> Tensor:
        return ChainFactors(-x @ self.W.T, self.A, lengths).energy(y)


class WrongStep(ChainEnergy):
    @offers.step("y")
    def step(
        self, state: StepState | None, x: Tensor, lengths: Tensor | None = None
    ) -> tuple[Tensor, StepState]:
        increments, after = super().step(state, x, lengths)
        return increments + 0.01, after


class WrongStats(CentroidEnergy):
    @offers.from_stats
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        self.mu.data.copy_(stats["x"])


class WrongGradient(Energy):
    def __init__(self) -> None:
        super().__init__(x=Real(1))
        self.a = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return (self.a.detach() * x).sum(-1) * self.a.sum()


class WrongTotal(BilinearEnergy):
    normalised = frozenset({"x", "z"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WrongTable(2, 3, scale=1.0), "table of y"),
        (lambda: WrongArgmin(2), "argmin of y"),
        (lambda: WrongDiscreteArgmin(2, 2, scale=1.0), "argmin of z"),
        (lambda: WrongConditional(3, 2), "conditional of z"),
        (lambda: WrongGaussian(2), "conditional of y"),
        (lambda: WrongNormaliser(2), "log_partition of y"),
        (lambda: WrongChain(2, 3, 3, scale=1.0), "chain of y"),
        (lambda: WrongStep(2, 3, 3, scale=1.0), "step of y"),
        (lambda: WrongStats(2, 2), "from_stats"),
        (lambda: WrongGradient(), "gradient of a"),
        (lambda: WrongTotal(2, 2), "normalised"),
    ],
)
def test_mistakes_are_found(make: Callable[[], Energy], message: str) -> None:
    energy = make()
    g = torch.Generator().manual_seed(0)
    values = {n: s.draw(6, generator=g) for n, s in energy.spaces.items()}
    with pytest.raises(Mismatch, match=f"{message}.* is .* where e says"):
        gradcheck(energy, values)


def test_report_reads_well() -> None:
    g = torch.Generator().manual_seed(0)
    energy = SquaredEnergy(2, 4)
    report = gradcheck(energy, {n: s.draw(3, generator=g) for n, s in energy.spaces.items()})
    assert report.worst < 1e-6
    assert "gradient of W" in str(report)
    assert not report.unchecked
    assert energy.W.dtype == torch.float32  # the energy itself is untouched
    assert not energy.W.data.any()
