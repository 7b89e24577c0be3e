"""What happens inside: contributions, patterns and joints; merging of affine layers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn import MLP, collapse_linear, linear_regions, trace
from groundstate.nn.piecewise import construct


def shallow(d_in: int = 1, units: int = 3, out: int = 1, seed: int = 0) -> MLP:
    g = torch.Generator().manual_seed(seed)
    net = MLP(d_in, (units,), out, generator=g).double()
    nn.init.normal_(net.layers[0].bias, generator=g)
    nn.init.normal_(net.layers[2].bias, generator=g)
    return net.requires_grad_(False)


def rows(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("bias", ["implicit", "node"])
def test_panels_sum_to_the_output(bias: str) -> None:
    net = MLP(2, (4, 3), 2, generator=torch.Generator().manual_seed(1)).double()
    nn.init.normal_(net.layers[2].bias, generator=torch.Generator().manual_seed(2))
    x = rows(6, 2)
    seen = trace(net, x, bias)
    for layer in seen.values():
        total = layer["contributions"].sum(-1) + layer["offset"]
        assert torch.allclose(total, layer["z"], atol=1e-12)
        assert layer["pattern"].dtype == torch.uint8
        assert torch.equal(layer["pattern"].bool(), layer["z"] > 0)
    last = list(seen.values())[-1]
    assert torch.allclose(last["a"], net(x), atol=1e-12)
    assert last["contributions"].shape == (6, 2, 3 + (bias == "node"))


def test_each_joint_flips_one_bit() -> None:
    net = shallow(units=4)
    w, b = net.layers[0].weight[:, 0], net.layers[0].bias
    joints = (-b / w).sort().values
    assert linear_regions(net, (-50, 50)).breakpoints[1:-1].tolist() == pytest.approx(
        joints.tolist()
    )
    for joint in joints:
        sides = torch.stack([joint - 1e-6, joint + 1e-6])[:, None]
        first = next(iter(trace(net, sides).values()))["pattern"].int()
        assert int((first[0] - first[1]).abs().sum()) == 1


def test_slope_of_a_region_is_the_sum_over_active_units() -> None:
    net = shallow(units=5)
    phi, theta = net.layers[2].weight[0], net.layers[0].weight[:, 0]
    for value in (-3.0, -0.4, 0.3, 2.0):
        x = torch.tensor([[value]], dtype=torch.float64, requires_grad=True)
        active = next(iter(trace(net, x).values()))["pattern"][0]
        (slope,) = torch.autograd.grad(net(x).sum(), x)
        assert slope.item() == pytest.approx(float((active * phi * theta).sum()), abs=1e-12)


def test_outputs_share_their_joints() -> None:
    net = shallow(units=4, out=3)
    found = linear_regions(net, (-50, 50))
    assert found.count == 5 and found.slopes.shape == (5, 3, 1)
    change = abs(found.slopes[1:, :, 0] - found.slopes[:-1, :, 0])  # every output bends at each
    assert (change > 1e-9).all()


def test_norms_skips_and_inplace_activations() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.ReLU(inplace=True)).double()
    x = rows(4, 2)
    seen = trace(net, x)["0"]
    assert torch.allclose(seen["contributions"].sum(-1) + seen["offset"], seen["z"], atol=1e-12)
    assert torch.equal(seen["pattern"].bool(), net[:2](x) > 0)
    assert torch.allclose(seen["a"], net(x))
    residual = MLP(2, (3, 3), 1, residual=True).double()
    assert len(trace(residual, x)) == 3


def test_trace_errors() -> None:
    with pytest.raises(ValueError, match="bias must be one of implicit, node"):
        trace(shallow(), rows(2, 1), "hidden")
    with pytest.raises(Unsupported, match="trace reads linear layers, ReLU has none"):
        trace(nn.ReLU(), rows(2, 1))


def test_affine_layers_merge() -> None:
    net = nn.Sequential(
        nn.Linear(3, 5), nn.Identity(), nn.Sequential(nn.Linear(5, 4, bias=False), nn.Linear(4, 2)),
        nn.Tanh(), nn.Linear(2, 6, bias=False), nn.Linear(6, 2, bias=False),
    ).double()  # fmt: skip
    merged = collapse_linear(net)
    assert [type(m) for m in merged] == [nn.Linear, nn.Tanh, nn.Linear]
    assert merged[0].bias is not None and merged[2].bias is None
    x = rows(20, 3)
    assert torch.allclose(merged(x), net(x), atol=1e-12)


def test_without_activations_one_affine_map_is_left() -> None:
    net = MLP(4, (9, 7, 8), 3, "identity").double()
    merged = collapse_linear(net)
    assert len(merged) == 1 and merged[0].weight.shape == (3, 4)
    assert torch.allclose(merged(rows(5, 4)), net(rows(5, 4)), atol=1e-12)


def test_two_shallow_networks_share_a_rank_one_layer() -> None:
    """Composition is a two-layer network with Ψ = θ'φᵀ and ψ0 = θ'0 + θ'1 φ0."""
    f, g = shallow(seed=1), shallow(seed=2)
    merged = construct.compose(f, g)
    middle = merged[2]
    assert [m.weight.shape for m in merged if isinstance(m, nn.Linear)] == [(3, 1), (3, 3), (1, 3)]
    assert torch.linalg.matrix_rank(middle.weight) == 1
    phi, phi0 = f.layers[2].weight, f.layers[2].bias
    theta, theta0 = g.layers[0].weight, g.layers[0].bias
    assert torch.allclose(middle.weight, theta @ phi, atol=1e-12)
    assert torch.allclose(middle.bias, theta0 + theta[:, 0] * phi0, atol=1e-12)
    x = rows(9, 1)
    assert torch.allclose(merged(x), g(f(x)), atol=1e-12)


def test_layers_are_copied() -> None:
    net = MLP(2, (3,), 1)
    merged = collapse_linear(net)
    with torch.no_grad():
        merged[0].weight.zero_()
    assert net.layers[0].weight.abs().sum() > 0
