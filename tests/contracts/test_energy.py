"""The contract of every energy, over the registry: a new row is tested by being there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    ChainRuleEnergy,
    DecoderEnergy,
    DensityEnergy,
    DistributionHead,
    Energy,
    LatentClassEnergy,
    LinearEnergy,
    LinearGaussianEnergy,
    SquaredEnergy,
    TableEnergy,
    exact_free_energy,
    exact_minimum,
    gradcheck,
    marginal_way,
    minimum_way,
)
from groundstate.energy.registering import example_rows
from groundstate.registry import energies


def _normal(variable: str, d: int) -> DensityEnergy:
    return DensityEnergy(Normal(torch.zeros(d), torch.ones(d)), variable)


COMPOSED: dict[str, Callable[[], Energy]] = {
    "sum": lambda: LinearEnergy(2, 3, scale=1.0) + TableEnergy(torch.tensor([0.0, 1.0, 2.0]), "y"),
    "gaussian sum": lambda: SquaredEnergy(2, 2) + _normal("y", 2),
    "directed sum": lambda: _normal("z", 1) + DistributionHead("normal", 1, 1, variable="x", given="z"),
    "scaled": lambda: 2.0 * LinearGaussianEnergy(1, 1),
    "given": lambda: LinearEnergy(2, 3, scale=1.0).given(x=torch.ones(1, 2)),
    "marginal": lambda: CentroidEnergy(3, 2).marginal("z"),
    "marginal of bits": lambda: BilinearEnergy(3, 3, scale=1.0).marginal("z", T=0.5),
    "minimal": lambda: LatentClassEnergy(2, 3, 2, scale=1.0).minimal("z"),
    "table of two": lambda: TableEnergy(torch.tensor([[0.4, 0.1], [0.2, 0.3]])),
    "small code": lambda: LinearGaussianEnergy(1, 1, s=1.5),
    "small decoder": lambda: DecoderEnergy(1, 1, net=(4,)),
    "linear classes": lambda: DistributionHead("categorical", 2, 3),
    "network regression": lambda: SquaredEnergy(2, 1, net=(4,)),
    "table of strings": lambda: ChainRuleEnergy(2, 3, "table", (1, 2, 0)),
}  # fmt: skip


def _made(name: str) -> Energy:
    if name in COMPOSED:
        return COMPOSED[name]()
    make = energies[name].make
    assert make is not None, f"{name} needs make= in its registration"
    made: Energy = make()
    return made


NAMES = [*energies.names(), *COMPOSED]


@pytest.fixture(params=NAMES)
def energy(request: pytest.FixtureRequest) -> Energy:
    return _made(request.param)


def rows(energy: Energy, n: int = 5, seed: int = 0) -> dict[str, Tensor]:
    return example_rows(energy, n, torch.Generator().manual_seed(seed))


def test_gradients_and_abilities(energy: Energy) -> None:
    report = gradcheck(energy, rows(energy))
    assert report.worst < 1e-4


def test_one_energy_per_row(energy: Energy) -> None:
    for n in (1, 2, 7):
        assert energy(**rows(energy, n)).shape == (n,)


def test_rows_do_not_see_each_other(energy: Energy) -> None:
    energy = energy.double()
    values = rows(energy, 6)
    e = energy(**values)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    shuffled = energy(**{n: v[order] for n, v in values.items()})
    assert torch.allclose(shuffled, e[order], rtol=1e-12, atol=1e-12)
    alone = torch.cat([energy(**{n: v[i : i + 1] for n, v in values.items()}) for i in range(6)])
    assert torch.allclose(alone, e, rtol=1e-12, atol=1e-12)


def test_deterministic(energy: Energy) -> None:
    values = rows(energy)
    assert torch.equal(energy(**values), energy(**values))


def test_float32_and_float64_agree(energy: Energy) -> None:
    values = rows(energy)
    single = energy(**values)
    double = energy.double()(
        **{n: v.double() if v.is_floating_point() else v for n, v in values.items()}
    )
    assert single.dtype == torch.float32 and double.dtype == torch.float64
    assert torch.allclose(single.double(), double, rtol=1e-3, atol=1e-3)


def test_exact_minimum_is_lowest(energy: Energy) -> None:
    energy = energy.double()
    values = rows(energy)
    for name in energy.spaces:
        if minimum_way(energy, (name,)) is None:
            assert exact_minimum(energy, (name,), {}) is None
            continue
        given = {n: v for n, v in values.items() if n != name}
        best = exact_minimum(energy, (name,), given)
        assert best is not None
        found = {n: v.expand(5, *v.shape[1:]) for n, v in best.items()}
        given = given or {}
        assert (energy(**given, **found) <= energy(**values) + 1e-9).all()


def test_free_energy_is_below_every_energy_of_a_finite_variable(energy: Energy) -> None:
    energy = energy.double()
    values = rows(energy)
    for name, space in energy.spaces.items():
        if not space.is_finite or marginal_way(energy, (name,)) is None:
            continue
        given = {n: v for n, v in values.items() if n != name}
        for T in (0.3, 1.0):
            F = exact_free_energy(energy, (name,), given, T)
            assert F is not None
            assert (energy(**values) + 1e-9 >= F).all()


def test_a_constant_changes_no_distribution(energy: Energy) -> None:
    """Adding a part that is the same everywhere moves F and nothing else."""
    energy = energy.double()
    values = rows(energy)
    constant = Constant(energy.spaces).double()
    moved = energy + constant
    assert torch.allclose(moved(**values), energy(**values) + 3.0)
    for name, space in energy.spaces.items():
        if not space.is_finite or space.size > 1000:
            continue
        given = {n: v for n, v in values.items() if n != name}
        before, after = energy.table(name, **given), moved.table(name, **given)
        assert torch.allclose(torch.softmax(-before, 1), torch.softmax(-after, 1), atol=1e-12)
        assert torch.equal(before.argmin(1), after.argmin(1))


class Constant(Energy):
    def __init__(self, spaces: object) -> None:
        super().__init__(**dict(spaces))  # type: ignore[call-overload]

    def forward(self, **values: Tensor) -> Tensor:
        v = next(iter(values.values()))
        return torch.full((v.shape[0],), 3.0, dtype=torch.float64)


@pytest.mark.parametrize("name", energies.names())
def test_documented(name: str) -> None:
    row = energies[name]
    doc = row.obj.__doc__ or ""
    assert row.formula and row.summary
    assert ":math:" in doc.split("Parameters")[0], "the formula comes first"
    assert "Parameters" in doc and ">>>" in doc
    assert callable(getattr(row.obj, "config", None)), "config() gives the constructor arguments"
