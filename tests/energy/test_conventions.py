"""Sign, temperature, shapes and spaces."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from groundstate.energy import (
    BilinearEnergy,
    Binary,
    Count,
    Energy,
    Finite,
    LinearEnergy,
    Real,
    Sequence,
    Simplex,
    TableEnergy,
    exact_minimum,
    free_energy,
)
from groundstate.energy.abilities import offers
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import minimise, posterior

F64 = torch.float64
E124 = torch.tensor([1.0, 2.0, 4.0], dtype=F64)


def test_low_energy_is_preferred() -> None:
    energy = LinearEnergy(2, 3, scale=1.0).double()
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=F64)
    logits = x @ energy.W.T + energy.b
    assert torch.equal(minimise(energy, "y", {"x": x})["y"], logits.argmax(1))
    assert torch.allclose(posterior(energy, "y", {"x": x}).probs, logits.softmax(1), atol=1e-14)


def test_a_constant_changes_nothing() -> None:
    class Shifted(LinearEnergy):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return super().forward(x, y) + 7.0

        energies = None  # type: ignore[assignment]
        _declared = Energy._declared

    plain, shifted = LinearEnergy(2, 3, scale=1.0).double(), Shifted(2, 3, scale=1.0).double()
    shifted.load_state_dict(plain.state_dict())
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0), dtype=F64)
    y = torch.arange(20) % 3
    assert torch.allclose(shifted.table("y", x=x), plain.table("y", x=x) + 7)
    assert torch.equal(
        exact_minimum(plain, ("y",), {"x": x})["y"],  # type: ignore[index]
        exact_minimum(shifted, ("y",), {"x": x})["y"],  # type: ignore[index]
    )
    grads = []
    for energy in (plain, shifted):
        loss = energy(x=x, y=y) - free_energy(energy.table("y", x=x))
        grads.append(torch.autograd.grad(loss.sum(), energy.W)[0])
    assert torch.allclose(*grads, atol=1e-12)


def test_ties_go_to_the_lowest_index() -> None:
    tied = TableEnergy(torch.tensor([2.0, 1.0, 1.0]))
    assert exact_minimum(tied, ("x",)) == {"x": torch.tensor([1])}
    flat = BilinearEnergy(2, 3, scale=0.0)
    assert minimise(flat, "z", {"x": torch.ones(1, 2)})["z"].tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_bad_energies_are_named(bad: float) -> None:
    energy = TableEnergy(torch.tensor([[0.0, 1.0], [bad, 0.0]]))
    with pytest.raises(FloatingPointError, match="row 1"):
        minimise(energy, "y", {"x": torch.tensor([0, 1])})


def test_a_row_of_forbidden_values_is_an_error() -> None:
    with pytest.raises(ValueError, match="forbidden"):
        posterior(TableEnergy(torch.full((3,), math.inf)), "x")


def test_forbidden_values_have_probability_zero() -> None:
    distribution = posterior(TableEnergy(torch.tensor([0.0, math.inf, 0.0])), "x")
    assert distribution.probs.tolist() == [[0.5, 0.0, 0.5]]


@pytest.mark.parametrize(
    ("T", "expected"),
    [
        (1.0, (0.705385, 0.259496, 0.035119)),
        (0.2, (0.993307, 0.006693, 3.0e-7)),
        (math.inf, (1 / 3, 1 / 3, 1 / 3)),
        (0.0, (1.0, 0.0, 0.0)),
    ],
)
def test_temperature(T: float, expected: tuple[float, ...]) -> None:
    probs = posterior(TableEnergy(E124), "x", T=T).probs[0]
    assert torch.allclose(probs, torch.tensor(expected, dtype=F64), atol=6e-7)


def test_entropy_grows_with_temperature() -> None:
    energy = TableEnergy(E124)
    entropies = [posterior(energy, "x", T=T).entropy().item() for T in (0.1, 0.5, 1, 2, 10, 1e3)]
    assert entropies == sorted(entropies)


def test_batch_mismatch_lists_all_shapes() -> None:
    with pytest.raises(ShapeError, match=r"x \(3, 2\), y \(1,\)"):
        LinearEnergy(2, 3)(x=torch.zeros(3, 2), y=torch.zeros(1, dtype=torch.int64))
    with pytest.raises(ShapeError, match="broadcasting"):

        class Wrong(Energy):
            def forward(self, x: Tensor) -> Tensor:
                return x

        Wrong(x=Real(2))(x=torch.zeros(3, 2))


def test_free_energy_values() -> None:
    e = torch.tensor([1.0, 2.0, 3.0], dtype=F64)
    for T, value in [(10.0, -9.019428), (1.0, 0.592394), (0.1, 0.999995), (0.01, 1.0)]:
        assert free_energy(e, T).item() == pytest.approx(value, abs=5e-7)
    leaf = e.clone().requires_grad_()
    (grad,) = torch.autograd.grad(free_energy(leaf, 1 / 3), leaf)
    assert torch.allclose(grad, torch.tensor([0.950330, 0.047314, 0.002356], dtype=F64), atol=5e-7)
    assert free_energy(torch.tensor([-1000.0, -1000.0], dtype=F64)).item() == pytest.approx(
        -1000.693147, abs=5e-7
    )


def test_free_energy_limits() -> None:
    e = torch.tensor([[1.0, 1.0, 3.0], [2.0, 5.0, math.inf]], dtype=F64)
    assert free_energy(e, 0.0).tolist() == [1.0, 2.0]
    assert free_energy(e, math.inf).tolist() == pytest.approx([5 / 3, 3.5])
    T = 1e6
    near = free_energy(e, T) + T * torch.tensor([3.0, 2.0], dtype=F64).log()
    assert torch.allclose(near, free_energy(e, math.inf), atol=1e-5)
    small = 1e-3  # minimum minus T log multiplicity
    assert free_energy(e, small)[0].item() == pytest.approx(1 - small * math.log(2))


@pytest.mark.parametrize("T", [0.0, 0.5, 1.0, math.inf])
def test_free_energy_gradient_with_forbidden_values(T: float) -> None:
    e = torch.tensor([1.0, math.inf, 2.0], dtype=F64, requires_grad=True)
    (grad,) = torch.autograd.grad(free_energy(e, T), e)
    assert torch.isfinite(grad).all()
    assert grad[1] == 0
    assert grad.sum().item() == pytest.approx(1.0)


def test_free_energy_half_precision_and_axes() -> None:
    e = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert free_energy(e.half()).dtype == torch.float32
    flat = free_energy(e.flatten(1), 0.7)
    assert torch.allclose(free_energy(e, 0.7, dim=(1, 2)), flat)
    with pytest.raises(ValueError, match="temperature"):
        free_energy(e, -1.0)


@pytest.mark.parametrize(
    ("space", "size"),
    [(Finite(5), 5), (Binary(3), 8), (Binary(2, 2), 16), (Sequence(Finite(3), 4), 81)],
)
def test_listable_spaces(space: Finite | Binary | Sequence, size: int) -> None:
    values = space.enumerate()
    assert space.size == size == len(values)
    assert values.shape[1:] == space.shape
    assert space.contains(values).all()
    assert len({tuple(v.flatten().tolist()) for v in values}) == size
    assert space.contains(space.draw(10, generator=torch.Generator().manual_seed(0))).all()


@pytest.mark.parametrize(
    "space",
    [
        Real(2), Real(2, low=0.0), Real(low=-1.0, high=1.0), Real(2, high=3.0), Simplex(3),
        Count(2), Sequence(Real(2), 3),
    ],
)  # fmt: skip
def test_endless_spaces(space: Real | Simplex | Count | Sequence) -> None:
    assert space.size == math.inf
    draws = space.draw(10, generator=torch.Generator().manual_seed(0))
    assert draws.shape == (10, *space.shape)
    assert space.contains(draws).all()
    with pytest.raises(Unsupported, match="cannot be enumerated"):
        space.enumerate()


def test_binary_is_lexicographic() -> None:
    assert Binary(2).enumerate().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert not Binary(2).contains(torch.tensor([[0.5, 1.0]])).any()
    assert not Finite(3).contains(torch.tensor([3, -1])).any()


def test_spaces_are_values() -> None:
    assert Real(2, low=0.0) == Real(2, low=0.0) != Real(2)
    assert len({Finite(3), Finite(3), Count(1), Count(1), Binary(2)}) == 3
    with pytest.raises(ValueError, match="low < high"):
        Real(1, low=1.0, high=0.0)
    with pytest.raises(ValueError, match="at least one"):
        Finite(0)


def test_generic_table_equals_values_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Product(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(2), y=Finite(5))

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x.sum(-1) * y + y**2

    x = torch.tensor([[1.0, 2.0], [0.5, -1.0], [0.0, 0.0]])
    each = torch.stack([Product()(x=x, y=torch.full((3,), k)) for k in range(5)], 1)
    assert torch.equal(Product().table("y", x=x), each)
    monkeypatch.setattr("groundstate.energy.base.TABLE_CHUNK", 12)  # two values at a time
    assert torch.equal(Product().table("y", x=x), each)
    hot = torch.nn.functional.one_hot(torch.tensor([4, 0, 2]), 5)
    assert torch.equal((hot * each).sum(1), Product()(x=x, y=torch.tensor([4, 0, 2])))
    with pytest.raises(Unsupported, match="cannot list"):
        Product().table("x", y=torch.tensor([1]))


def test_linear_table_is_one_product() -> None:
    energy = LinearEnergy(3, 4, scale=1.0)
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(energy.table("y", x=x), -torch.nn.functional.linear(x, energy.W, energy.b))


def test_capabilities_are_data() -> None:
    rows = {(c.kind, c.variables, c.declared) for c in LinearEnergy(2, 3).capabilities()}
    assert ("table", ("y",), True) in rows
    rows = {(c.kind, c.variables, c.declared) for c in BilinearEnergy(2, 3).capabilities()}
    assert ("table", ("x",), False) in rows
    assert ("conditional", ("z",), True) in rows
    assert LinearEnergy(2, 3).offer("table", "y") is not None
    assert LinearEnergy(2, 3).offer("argmin", "y") is None


def test_abilities_come_from_every_base() -> None:
    class Lowest:  # no energy itself
        @offers.argmin("y")
        def lowest(self, *, x: Tensor) -> Tensor:
            return x

    class First(Energy):
        @offers.table("y")
        def values(self, *, x: Tensor) -> Tensor:
            return x

    class Second(Energy):
        @offers.argmin("y")
        def least(self, *, x: Tensor) -> Tensor:
            return -x

    assert set(type("A", (First, Second), {})._declared) == {
        ("table", frozenset({"y"})), ("argmin", frozenset({"y"}))
    }  # fmt: skip
    mixed = type("B", (Lowest, First, Second), {})
    assert mixed._declared[("argmin", frozenset({"y"}))][0] == "lowest"  # the nearest one
