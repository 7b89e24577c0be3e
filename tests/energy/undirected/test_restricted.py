"""RestrictedEnergy: the worked machine, other visible columns, and what is exact against sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from groundstate.energy import BilinearEnergy, RestrictedEnergy
from groundstate.energy.spaces import Binary, Levels, Real
from groundstate.energy.undirected.columns import ColumnsDistribution
from groundstate.infer import Gibbs, kernel_matrix, marginalise, sample
from groundstate.infer.sampling.annealed_layers import annealed_log_partition

F64 = torch.float64


@pytest.fixture(autouse=True)
def _values_only() -> Iterator[None]:
    with torch.no_grad():
        yield


def worked(kind: type = RestrictedEnergy) -> RestrictedEnergy | BilinearEnergy:
    e = (RestrictedEnergy((2, 2), 2) if kind is RestrictedEnergy else BilinearEnergy(2, 2)).double()
    with torch.no_grad():
        e.W.copy_(torch.tensor([[1.0, -1.0], [0.5, 2.0]]))
        e.b.copy_(torch.tensor([0.1, -0.2]))
        e.c.copy_(torch.tensor([0.3, -0.4]))
    return e


def mixed(context: int = 0) -> RestrictedEnergy:
    generator = torch.Generator().manual_seed(1)
    e = RestrictedEnergy(
        (0, 3, 2, 0), 3, context=context, sigma=0.7, scale=0.8, generator=generator
    ).double()
    with torch.no_grad():
        e.b.copy_(torch.randn(6, generator=generator))
        e.c.copy_(torch.randn(3, generator=generator))
        if context:
            e.net.weight.copy_(torch.randn(9, context, generator=generator))
    return e


STATES = torch.tensor(list(itertools.product((0.0, 1.0), repeat=2)), dtype=F64)
ENERGIES = [
    [0, 0.4, -0.3, 0.1],
    [0.2, -1.4, -0.6, -2.2],
    [-0.1, 1.3, -1.4, 0],
    [0.1, -0.5, -1.7, -2.3],
]


@pytest.mark.parametrize("kind", [RestrictedEnergy, BilinearEnergy])
def test_the_worked_machine(kind: type) -> None:
    e = worked(kind)
    found = torch.stack([e(x=x.expand(4, 2), z=STATES) for x in STATES])
    torch.testing.assert_close(found, torch.tensor(ENERGIES, dtype=F64), atol=1e-7, rtol=0)
    F = torch.tensor([-1.367370, -2.755001, -1.861426, -2.890466], dtype=F64)
    torch.testing.assert_close(-e.over_z(STATES), F, atol=1e-6, rtol=0)
    assert float(e.total()) == pytest.approx(3.786021, abs=1e-6)
    p = (e.over_z(STATES) - e.total()).exp()
    stated = torch.tensor([0.089042, 0.356643, 0.145935, 0.408381], dtype=F64)
    torch.testing.assert_close(p, stated, atol=1e-6, rtol=0)
    up = e.distribution_z(x=STATES[2:3]).mean
    torch.testing.assert_close(
        up, torch.tensor([[0.785835, 0.197816]], dtype=F64), atol=1e-6, rtol=0
    )
    down = e.distribution_x(z=STATES[3:4]).mean
    torch.testing.assert_close(
        down, torch.tensor([[0.524979, 0.908877]], dtype=F64), atol=1e-6, rtol=0
    )


def test_eigenvalues_of_the_kernel_of_x() -> None:
    P = kernel_matrix(Gibbs(blocks=("z", "x")).kernel(worked(BilinearEnergy)), on="x")
    found = torch.linalg.eigvals(P).real.sort(descending=True).values
    stated = torch.tensor([1.0, 0.200096, 0.048580, 0.004654], dtype=F64)
    torch.testing.assert_close(found, stated, atol=1e-6, rtol=0)


def test_a_gaussian_column() -> None:
    e = RestrictedEnergy((0,), 1).double()
    with torch.no_grad():
        e.W.fill_(2.0)
        e.c.fill_(-1.0)
    p = e.distribution_z(x=torch.ones(1, 1, dtype=F64)).mean
    assert float(p) == pytest.approx(0.731059, abs=1e-6)
    x = torch.linspace(-12, 14, 20001, dtype=F64)[:, None]
    numeric = (e.over_z(x).exp().sum() * (x[1] - x[0])).log()
    assert float(e.total()) == pytest.approx(float(numeric), abs=1e-9)


@pytest.mark.parametrize("context", [0, 2])
@pytest.mark.parametrize("T", [1.0, 2.5])
def test_mixed_columns_against_sums(context: int, T: float) -> None:
    e = mixed(context)
    y = {"y": torch.tensor([[0.5, -1.0]], dtype=F64)} if context else {}
    z = e.spaces["z"].enumerate(dtype=F64)  # (8, 3)
    given = {name: v.expand(8, -1) for name, v in y.items()}
    x = torch.tensor([[0.4, 2.0, 1.0, -0.8]], dtype=F64)
    energies = e(x=x.expand(8, -1), z=z, **given)
    found = e.over_z(x, T=T, **y)
    torch.testing.assert_close(found, torch.logsumexp(-energies / T, 0, keepdim=True))
    # over x: categories and bits listed, reals by quadrature
    line = torch.linspace(-9, 9, 1201, dtype=F64)
    cell = (line[1] - line[0]).log() * 2
    reals = torch.cartesian_prod(line[::4], line[::4])
    total: list[Tensor] = []
    for k, bit in itertools.product(range(3), range(2)):
        rest = torch.tensor([float(k), float(bit)], dtype=F64).expand(len(reals), 2)
        rows = torch.stack([reals[:, 0], rest[:, 0], rest[:, 1], reals[:, 1]], 1)
        many = {name: v.expand(len(rows), -1) for name, v in y.items()}
        total.append(-e(x=rows, z=z[5:6].expand(len(rows), -1), **many) / T)
    numeric = torch.cat(total).logsumexp(0) + cell + 2 * math.log(4)
    assert float(e.over_x(z[5:6], T=T, **y)) == pytest.approx(float(numeric), abs=1e-6)
    joint = torch.logsumexp(e.over_x(z, T=T, **given), 0)
    assert float(e.total(T=T, **y)) == pytest.approx(float(joint), abs=1e-12)


def test_conditionals_are_the_energy_up_to_a_constant() -> None:
    e = mixed()
    generator = torch.Generator().manual_seed(0)
    x = e.spaces["x"].draw(200, generator=generator, dtype=F64)
    z = e.spaces["z"].draw(1, generator=generator, dtype=F64).expand(200, -1)
    gap = e.distribution_x(z=z).log_prob(x) + e(x=x, z=z)
    torch.testing.assert_close(gap, gap[:1].expand(200))
    torch.testing.assert_close(-gap[:1], e.over_x(z[:1]))


def test_draws_of_columns_have_their_moments() -> None:
    inputs = torch.tensor([[0.3, 0.0, 1.0, -1.0, 0.8]], dtype=F64)
    p = ColumnsDistribution(inputs, (0, 3, 2), sigma=0.5)
    drawn = p.draw(100_000, torch.Generator().manual_seed(0))[:, 0]
    share = torch.bincount(drawn[:, 1].long(), minlength=3) / len(drawn)
    torch.testing.assert_close(share.double(), inputs[0, 1:4].softmax(0), atol=0.006, rtol=0)
    assert float(drawn[:, 2].mean()) == pytest.approx(1 / (1 + math.exp(-0.8)), abs=0.006)
    assert float(drawn[:, 0].mean()) == pytest.approx(0.3, abs=0.01)
    assert float(drawn[:, 0].std()) == pytest.approx(0.5, abs=0.01)
    value, free = torch.tensor([[9.0, 2.0, 0.0]], dtype=F64), torch.tensor([[False, True, False]])
    held = ColumnsDistribution(inputs, (0, 3, 2), held=(value, free))
    again = held.draw(500, torch.Generator().manual_seed(0))[:, 0]
    assert (again[:, [0, 2]] == value[:, [0, 2]]).all() and len(again[:, 1].unique()) == 3


def test_known_cells_stay_when_the_rest_is_sampled() -> None:
    e = mixed()
    x = torch.tensor([[0.4, 2.0, 1.0, -0.8]], dtype=F64)
    free = torch.tensor([[True, False, False, True]])
    drawn = sample(
        e, {"x": free, "z": torch.ones(1, 3, dtype=torch.bool)}, {"x": x, "z": torch.zeros(1, 3, dtype=F64)},
        n=7, method=Gibbs(n_steps=3), generator=torch.Generator().manual_seed(0),
    )["x"]  # fmt: skip
    assert (drawn[..., 1:3] == x[:, 1:3]).all()
    assert len(drawn[..., 0].unique()) == 7


def test_spaces_and_refusals() -> None:
    assert RestrictedEnergy((2, 2), 1).spaces["x"] == Binary(2)
    assert RestrictedEnergy((0, 0), 1).spaces["x"] == Real(2)
    assert RestrictedEnergy((0, 2), 1).spaces["x"] == Levels((0, 2))
    assert not RestrictedEnergy((0,), 30).is_listed and RestrictedEnergy((3,), 30).is_listed
    with pytest.raises(ValueError, match="at least 2"):
        RestrictedEnergy((1, 2), 1)
    with pytest.raises(ValueError, match="above 0"):
        RestrictedEnergy((0,), 1, sigma=0.0)


@pytest.mark.parametrize("kind", [RestrictedEnergy, BilinearEnergy])
def test_annealing_finds_log_z_of_the_worked_machine(kind: type) -> None:
    found = annealed_log_partition(
        worked(kind), n=2000, n_temps=100, generator=torch.Generator().manual_seed(0)
    )
    assert found.value == pytest.approx(3.786021, abs=0.01)
    assert abs(found.value - 3.786021) < 4 * found.stderr + 1e-4
    assert found.lower - 0.01 < 3.786021 < found.upper + 0.01


def test_annealing_brackets_log_z_of_mixed_columns() -> None:
    e, exact = mixed(), float(mixed().total())
    base = torch.zeros(6, dtype=F64)
    found = annealed_log_partition(
        e, base, n=1000, n_temps=200, generator=torch.Generator().manual_seed(0)
    )
    assert abs(found.value - exact) < 4 * found.stderr
    assert abs(found.upper - exact) < 0.2 and found.upper > found.lower - 0.1


def test_annealing_given_y() -> None:
    e, y = mixed(2), torch.tensor([[0.5, -1.0]], dtype=F64)
    found = annealed_log_partition(
        e, y=y, n=1000, n_temps=200, generator=torch.Generator().manual_seed(0)
    )
    assert abs(found.value - float(e.total(y))) < 4 * found.stderr
    assert float(marginalise(e, ("x", "z"), {"y": y}).value) == pytest.approx(-float(e.total(y)))


def test_gibbs_accepts_everything() -> None:
    drawn = sample(
        worked(BilinearEnergy), ("x", "z"), n=50, method=Gibbs(n_steps=3),
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    assert (drawn.accept == 1).all()
