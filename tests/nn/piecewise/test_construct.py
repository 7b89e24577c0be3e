"""Networks by hand: tables, steps, interpolants, walls, Bernstein polynomials, folding."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.nn import linear_regions
from groundstate.nn.piecewise import construct
from groundstate.store import dumps, loads

TAU = 2 * math.pi


def sup(net: torch.nn.Module, f: object, a: float, b: float, n: int = 20_001) -> float:
    x = torch.linspace(a, b, n, dtype=torch.float64)[:, None]
    with torch.no_grad():
        return (net(x) - f(x)).abs().max().item()  # type: ignore[operator]


@pytest.mark.parametrize("form", ["S", "2S"])
def test_table(form: str) -> None:
    values = torch.rand(30, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 - 1
    net = construct.table(values, form=form)
    s = torch.arange(1, 31, dtype=torch.float64)[:, None]
    assert (net(s)[:, 0] - values).abs().max() <= 1e-8
    assert net.widths == ((30,) if form == "S" else (60,))
    out = net.layers[2].weight[0].detach()
    if form == "S":
        assert torch.allclose(out.cumsum(0), values, atol=1e-12)
    else:
        assert torch.equal(out, torch.cat([values, -values]))


def test_a_step_by_a_steep_sigmoid_is_half_way_only_between_entries() -> None:
    net = construct.table([0.0, 1.0])
    x = torch.tensor([[1.5], [2.0]], dtype=torch.float64)
    assert net(x).flatten().tolist() == pytest.approx([0.5, 1.0], abs=1e-8)


@pytest.mark.parametrize(("epsilon", "units", "error"), [(0.1, 63, 0.0498), (0.01, 629, 0.00499)])
def test_step(epsilon: float, units: int, error: float) -> None:
    net = construct.step(torch.sin, 0, TAU, epsilon=epsilon)
    assert net.capacity == units
    found = sup(net, torch.sin, 0, TAU)
    assert found == pytest.approx(error, rel=2e-3) and found <= TAU / (2 * units)


def test_a_steeper_function_needs_more_units_in_proportion() -> None:
    def fast(x: Tensor) -> Tensor:
        return torch.sin(5 * x)

    net = construct.step(fast, 0, TAU, epsilon=0.1, lipschitz=5.0)
    assert net.capacity == 5 * 63 and sup(net, fast, 0, TAU) <= 0.05
    by_count = construct.step(torch.sin, 0, TAU, n=63)
    assert by_count.capacity == 63


def test_relu_interpolant() -> None:
    errors = []
    for pieces, error in ((8, 0.0704), (16, 0.0188), (32, 0.00479), (64, 0.00120)):
        knots = np.linspace(0, TAU, pieces + 1)
        net = construct.relu_interpolant(knots, torch.sin)
        errors.append(sup(net, torch.sin, 0, TAU))
        assert errors[-1] == pytest.approx(error, rel=5e-3) and net.capacity == pieces
        at = net(torch.from_numpy(knots)[:, None])[:, 0].detach().numpy()
        assert np.abs(at - np.sin(knots)).max() < 1e-12
    rate = np.polyfit(np.log([8, 16, 32, 64]), np.log(errors), 1)[0]
    assert rate == pytest.approx(-2, abs=0.05)


def test_knots_give_slopes() -> None:
    net = construct.relu_interpolant([0, 1, 3, 4], [1, 2, 0, 5])
    found = linear_regions(net, (-1, 4))
    assert found.breakpoints.tolist() == [-1, 0, 1, 3, 4]
    assert found.slopes[:, 0, 0].tolist() == pytest.approx([0, 1, -1, 5])


def test_bernstein() -> None:
    for n, error in ((10, 0.12305), (40, 0.06269), (160, 0.03149)):
        B = construct.bernstein(lambda x: (x - 0.5).abs(), n)
        assert sup(B, lambda x: (x - 0.5).abs(), 0, 1, 2001) == pytest.approx(error, abs=5e-6)
    line = construct.bernstein(lambda x: 3 * x - 1, 7)
    assert sup(line, lambda x: 3 * x - 1, 0, 1, 101) < 1e-12
    again = loads(dumps(B))
    x = torch.linspace(0, 1, 7)
    assert torch.equal(again(x), B(x)) and B(x).dtype == torch.float32
    v = torch.tensor([0.0, 0.3, 1.0], requires_grad=True)
    assert torch.isfinite(torch.autograd.grad(B(v).sum(), v)[0]).all()


def test_walls_hold_a_value_in_each_cell() -> None:
    side = np.linspace(0, 1, 5)
    low = np.array([[a, b] for a in side[:-1] for b in side[:-1]])
    values = np.sin(3 * low[:, 0]) + low[:, 1]
    net = construct.walls(construct.boxes(low, low + 0.25), values, kappa=400)
    middle = torch.from_numpy(low + 0.125)
    assert np.abs(net(middle)[:, 0].detach().numpy() - values).max() < 1e-6
    assert torch.equal(net.layers[-1].weight[0].detach(), torch.from_numpy(values))
    assert net(torch.tensor([[2.0, 2.0]], dtype=torch.float64)).abs().item() < 1e-6
    assert net.widths == (16 * 4, 16)


def test_walls_of_any_convex_cell() -> None:
    triangle = np.array([[0.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]), np.array([1.0, 1.0, 1.0])
    net = construct.walls([triangle], [3.0], kappa=200)
    x = torch.tensor([[0.0, 0.0], [0.0, -1.2], [1.5, 1.0]], dtype=torch.float64)
    assert net(x)[:, 0].tolist() == pytest.approx([3.0, 0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize(("K", "regions"), [(1, 4), (2, 16), (3, 64)])
def test_folding_of_three_units(K: int, regions: int) -> None:
    relu = torch.relu
    net = construct.folding(3, K)

    def f(x: Tensor) -> Tensor:
        return 5 - 3 * relu(x) + 2 * relu(x - 1) - 2 * relu(2 - x)

    def composed(x: Tensor) -> Tensor:
        y = f(x)
        for _ in range(K - 1):
            y = f(4 * y - 1)
        return y

    assert sup(net, composed, -0.5, 3) < 1e-10
    assert linear_regions(net, (-0.5, 3)).count == regions


@pytest.mark.parametrize(
    ("D", "K", "regions", "parameters"), [(5, 5, 7776, 136), (10, 5, 161051, 471), (4, 3, 125, 53)]
)
def test_folding_counts(D: int, K: int, regions: int, parameters: int) -> None:
    net = construct.folding(D, K)
    assert net.n_parameters == parameters == 3 * D + 1 + (K - 1) * D * (D + 1)
    assert linear_regions(net, (-0.5, D)).count == regions == (D + 1) ** K


def test_folding_is_the_composition_of_its_copies() -> None:
    single = construct.folding(4, 1)
    stretch = torch.nn.Linear(1, 1).double()
    with torch.no_grad():
        stretch.weight.fill_(5.0)
        stretch.bias.fill_(-1.0)
    twice = construct.compose(single, stretch, single)
    assert sup(construct.folding(4, 2), twice, -0.5, 4) < 1e-10


def test_errors() -> None:
    with pytest.raises(ValueError, match="form must be one of S, 2S"):
        construct.table([1.0], form="3S")
    with pytest.raises(ValueError, match="give one of epsilon and n"):
        construct.step(torch.sin, 0, 1)
    with pytest.raises(ValueError, match="an interval has a < b, got a=1, b=0"):
        construct.step(torch.sin, 1, 0, n=3)
    with pytest.raises(ValueError, match="epsilon and lipschitz are positive"):
        construct.step(torch.sin, 0, 1, epsilon=-0.1)
    with pytest.raises(ValueError, match="at least two increasing numbers"):
        construct.relu_interpolant([0, 0], [1, 1])
    with pytest.raises(ShapeError, match="3 knots need 3 values"):
        construct.relu_interpolant([0, 1, 2], [1, 1])
    with pytest.raises(ShapeError, match="1 cells need 1 values"):
        construct.walls(construct.boxes([[0.0]], [[1.0]]), [1.0, 2.0])
    with pytest.raises(ValueError, match="D >= 3 units and K >= 1 layers, got D=2"):
        construct.folding(2, 1)
    with pytest.raises(ValueError, match="degree is at least 1 and at most 1000, got 0"):
        construct.bernstein(torch.sin, 0)
