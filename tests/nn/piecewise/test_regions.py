"""Linear regions: exact counts and maps, the reference, bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.geometry.polygons_numba import areas, split_polygons
from groundstate.math.geometry.polygons_reference import split_polygons as reference
from groundstate.nn import MLP, linear_regions, region_bounds
from groundstate.nn.piecewise import construct
from groundstate.nn.piecewise.regions import shallow_regions

COUNTS = [2, 4, 7, 11, 16, 22, 29, 37]


def randomised(net: nn.Module, seed: int = 0) -> nn.Module:
    g = torch.Generator().manual_seed(seed)
    net = net.double().requires_grad_(False).eval()
    for p in net.parameters():
        p.copy_(torch.randn(p.shape, generator=g, dtype=p.dtype))
    return net


def random_net(widths: tuple[int, ...], n0: int, seed: int = 0, **options: object) -> nn.Module:
    return randomised(MLP(n0, widths, 2, **options), seed)  # type: ignore[arg-type]


def inside(polygon: np.ndarray) -> np.ndarray:
    return polygon.mean(0)


@pytest.mark.parametrize("n", range(1, 9))
def test_random_lines_attain_the_bound(n: int) -> None:
    assert shallow_regions(n, 2) == COUNTS[n - 1]
    for seed in range(3):
        # wide enough for all crossings of these lines
        assert linear_regions(random_net((n,), 2, seed), (-1000, 1000)).count == COUNTS[n - 1]


@pytest.mark.parametrize("n0", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"activation": "leaky_relu"},
        {"residual": True},
        {"norm": "batch"},
        {"activation": nn.PReLU()},
    ],
    ids=["relu", "leaky", "residual", "batch norm", "prelu"],
)
def test_the_network_is_the_map_of_each_region(n0: int, options: dict[str, object]) -> None:
    net = random_net((6, 5), n0, seed=3, **options)
    if "norm" in options:
        for m in net.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.running_mean.fill_(0.3)
                m.running_var.fill_(2.0)
    found = linear_regions(net, (-2, 3))
    assert found.exact and len(found) == found.count == len(found.patterns) > 4
    if n0 == 1:
        t = found.breakpoints
        points = ((t[1:] + t[:-1]) / 2)[:, None]
        assert (np.diff(t) > 0).all() and t[0] == -2 and t[-1] == 3
    else:
        points = np.array([inside(p) for p in found.polygons])
    out = net(torch.from_numpy(points)).numpy()
    ours = np.einsum("rkn,rn->rk", found.slopes, points) + found.offsets
    assert np.abs(out - ours).max() < 1e-9
    assert len(np.unique(found.patterns, axis=0)) >= found.count - 2  # a region is a pattern


@pytest.mark.parametrize("seed", range(3))
def test_regions_tile_the_domain(seed: int) -> None:
    found = linear_regions(random_net((8, 8), 2, seed), [(-1, 2), (0, 4)])
    total = areas(np.concatenate(found.polygons), np.cumsum([len(p) for p in found.polygons]))
    assert total.sum() == pytest.approx(12, rel=1e-9) and (total > 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_compiled_equals_reference(seed: int) -> None:
    net = random_net((7, 6), 2, seed)
    fast, slow = (linear_regions(net, (-3, 3), backend=b) for b in ("numba", "reference"))
    assert fast.count == slow.count

    def table(found: object) -> np.ndarray:
        keys = np.column_stack([found.patterns, found.slopes.reshape(found.count, -1)])  # type: ignore[attr-defined]
        return keys[np.lexsort(np.round(keys, 8).T)]

    assert np.allclose(table(fast), table(slow), atol=1e-9)


def test_cutting_one_square() -> None:
    square, ends = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.array([4])
    lines = np.array([[[1.0, -1.0, 0.0], [1.0, 0.0, 5.0], [0.0, 1.0, -0.5]]])
    for split in (split_polygons, reference):
        vertices, stops, parent, side = split(square, ends, lines)
        assert len(stops) == 4 and parent.tolist() == [0] * 4
        assert sorted(map(tuple, side.tolist())) == [(0, 1, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)]
        assert sorted(areas(vertices, stops).round(9)) == [0.125, 0.125, 0.375, 0.375]


def test_a_dense_grid_of_points_sees_no_other_pattern() -> None:
    net = random_net((8, 8), 2, seed=5)
    found = linear_regions(net, (-1, 1))
    x = (
        torch.rand(100_000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
        - 1
    )
    first = net.layers[:2](x) > 0
    second = net.layers[:4](x) > 0
    seen = {bytes(row) for row in torch.cat([first, second], 1).to(torch.uint8).numpy()}
    exact = {bytes(row) for row in found.patterns}
    assert seen <= exact and len(seen) > 0.9 * len(exact)


def test_bounds() -> None:
    assert region_bounds((3,)).lower == 4 and region_bounds((3, 3)).lower == 12
    assert region_bounds((4, 4), 2).lower == 44
    assert region_bounds((8, 8, 8), 2).lower == 9472 and region_bounds((8, 8, 8), 2).upper == 37**3
    assert [region_bounds((n,), 2).upper for n in range(1, 9)] == COUNTS
    assert [region_bounds((n,), 2).lower for n in range(1, 9)] == COUNTS
    for D, K in ((3, 2), (4, 3)):
        bounds = region_bounds((D,) * K)
        assert bounds.lower <= (D + 1) ** K <= bounds.upper
    with pytest.raises(ValueError, match="positive, got widths"):
        region_bounds(())


def test_random_deep_networks_stay_far_below() -> None:
    counts = [linear_regions(random_net((8, 8, 8), 2, seed), (-50, 50)).count for seed in range(20)]
    assert 250 <= np.median(counts) <= 400
    assert max(counts) < 0.1 * 9472 and max(counts) < 0.05 * region_bounds((8, 8, 8), 2).upper


def test_samples_count_from_below() -> None:
    net = random_net((6,), 3)
    few, many = (linear_regions(net, (-20, 20), samples=n) for n in (100, 50_000))
    assert not many.exact and few.count <= many.count <= shallow_regions(6, 3)
    assert many.count > 30
    again = linear_regions(net, (-20, 20), samples=50_000)
    assert np.array_equal(again.patterns, many.patterns)


def test_sampled_residual_network_agrees_with_torch() -> None:
    net = random_net((4, 4), 3, residual=True)
    assert linear_regions(net, (-2, 2), samples=2000).count > 10
    plane = nn.Sequential(nn.Linear(2, 3), net).double().requires_grad_(False)
    found = linear_regions(plane, (-2, 2))
    points = np.array([inside(p) for p in found.polygons])
    ours = np.einsum("rkn,rn->rk", found.slopes, points) + found.offsets
    assert np.abs(plane(torch.from_numpy(points)).numpy() - ours).max() < 1e-9


def test_units_with_a_common_joint_count_once() -> None:
    net = MLP(1, (2,), 1).double()
    with torch.no_grad():
        net.layers[0].weight.copy_(torch.tensor([[1.0], [-3.0]]))
        net.layers[0].bias.copy_(torch.tensor([-1.0, 3.0]))
    found = linear_regions(net, (0, 4))
    assert found.breakpoints.tolist() == [0, 1, 4]


def test_dead_and_constant_units_split_nothing() -> None:
    net = MLP(2, (3,), 1).double()
    with torch.no_grad():
        net.layers[0].weight.zero_()
        net.layers[0].bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    assert linear_regions(net, (-1, 1)).patterns.tolist() == [[1, 0, 0]]


def test_errors() -> None:
    with pytest.raises(Unsupported, match="piecewise linear .* the network has Tanh"):
        linear_regions(MLP(2, (3,), 1, "tanh"), (-1, 1))
    with pytest.raises(ShapeError, match="low < high, once or for each of 2 inputs"):
        linear_regions(MLP(2, (3,), 1), (1, -1))
    with pytest.raises(ValueError, match="backend must be one of numba, reference"):
        linear_regions(MLP(2, (3,), 1), (-1, 1), backend="cuda")
    with pytest.raises(Unsupported, match="a network with a linear layer"):
        linear_regions(nn.ReLU(), (-1, 1))


def test_folding_in_the_plane() -> None:
    """|x|, |y| by ReLU pairs: what the next layer draws in one quadrant appears in four."""
    fold = nn.Linear(2, 4, bias=False).double()
    pair = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], dtype=torch.float64)
    add = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
    up = nn.Linear(4, 2, bias=False).double()
    line = nn.Linear(2, 1).double()
    with torch.no_grad():
        fold.weight.copy_(pair)
        up.weight.copy_(add)
        line.weight.fill_(1.0)
        line.bias.fill_(-1.0)
    net = construct.compose(fold, nn.ReLU(), up, line, nn.ReLU())
    found = linear_regions(net, (-2, 2))
    assert found.count == 8
    x = torch.rand(10, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 4 - 2
    signs: Tensor = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert all(torch.allclose(net(s * x), net(x)) for s in signs)
