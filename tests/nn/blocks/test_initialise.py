"""Initial weights: sample variances, symmetry that never breaks."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from groundstate.errors import Unsupported
from groundstate.nn import MLP, init_
from groundstate.nn.blocks.initialise import IdenticalUnits, fans


def weights(scheme: str, d_in: int = 400, d_out: int = 200, **options: float) -> torch.Tensor:
    layer = nn.Linear(d_in, d_out)
    init_(layer, scheme, torch.Generator().manual_seed(0), **options)  # type: ignore[arg-type]
    return layer.weight.detach().double()


@pytest.mark.parametrize(
    ("scheme", "variance", "options"),
    [
        ("he", 2 / 400, {}),
        ("he", 2 / 200, {"mode": "fan_out"}),
        ("he_mean", 4 / 600, {}),
        ("xavier", 2 / 600, {}),
        ("xavier_normal", 2 / 600, {}),
        ("lecun", 1 / 400, {}),
        ("normal", 0.09, {"std": 0.3}),
        ("torch", 1 / (3 * 400), {}),
    ],
)
def test_sample_variances(scheme: str, variance: float, options: dict[str, float]) -> None:
    W = weights(scheme, **options)
    assert W.var().item() == pytest.approx(variance, rel=0.02)
    assert W.mean().item() == pytest.approx(0, abs=4 * math.sqrt(variance / W.numel()))


def test_relations_between_schemes() -> None:
    assert pytest.approx(0.013333, abs=5e-7) == 2 / (100 + 50)
    assert weights("xavier", 100, 50).var().item() == pytest.approx(0.013333, rel=0.05)
    assert weights("he_mean").var() / weights("xavier").var() == pytest.approx(2, rel=0.03)
    assert weights("he").var() / weights("torch").var() == pytest.approx(6, rel=0.03)


def test_uniform_schemes_stay_in_their_radius() -> None:
    assert weights("xavier").abs().max() <= math.sqrt(6 / 600)
    assert weights("torch").abs().max() <= 1 / 20


def test_auto_looks_at_the_activation_that_follows() -> None:
    net = MLP(400, (300, 300), 200, ["relu", "tanh"], init="auto")
    first, second, last = (m.weight.detach() for m in net.layers if isinstance(m, nn.Linear))
    assert first.var().item() == pytest.approx(2 / 400, rel=0.03)  # he
    assert second.abs().max() <= math.sqrt(6 / 600)  # xavier
    assert last.abs().max() <= math.sqrt(6 / 500)
    assert all(m.bias.abs().max() == 0 for m in net.layers if isinstance(m, nn.Linear))


def test_a_norm_layer_between_does_not_hide_the_activation() -> None:
    net = nn.Sequential(nn.Linear(400, 300), nn.BatchNorm1d(300), nn.ReLU())
    assert init_(net)[0].weight.var().item() == pytest.approx(2 / 400, rel=0.03)
    assert net[1].weight.tolist() == [1.0] * 300


def test_orthogonal() -> None:
    W = weights("orthogonal", 60, 40)
    assert torch.allclose(W @ W.T, torch.eye(40, dtype=torch.float64), atol=1e-5)
    relu = init_(nn.Sequential(nn.Linear(60, 40), nn.ReLU()), "orthogonal")
    W = relu[0].weight.detach()
    assert torch.allclose(W @ W.T, 2 * torch.eye(40), atol=1e-5)


def test_convolutions() -> None:
    conv = nn.Conv2d(16, 64, 3)
    assert fans(conv) == (144, 576)
    assert fans(nn.ConvTranspose2d(16, 64, 3)) == (144, 576)
    init_(conv, "he")
    assert conv.weight.var().item() == pytest.approx(2 / 144, rel=0.05)


@pytest.mark.parametrize("scheme", ["constant", "zeros"])
def test_equal_units_stay_equal(scheme: str) -> None:
    with pytest.warns(IdenticalUnits, match="stay identical; use 'auto'"):
        net = MLP(3, (5,), 1, "tanh").double()
        init_(net, scheme, value=0.3)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    y = x[:, :1] * x[:, 1:2] + 1
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    for _ in range(100):
        optimizer.zero_grad()
        (net(x) - y).square().mean().backward()
        optimizer.step()
    W = net.layers[0].weight.detach()
    assert (W - W[0]).abs().max() < 1e-12
    assert net.layers[2].bias.abs().item() > 0.1  # it did train


def test_signals_keep_their_size_through_relu_layers() -> None:
    net = MLP(100, (256,) * 20, 1, generator=torch.Generator().manual_seed(1))
    x = torch.randn(500, 100, generator=torch.Generator().manual_seed(2))
    second = net.layers[:-1](x).square().mean().item()
    assert 0.1 < second / x.square().mean().item() < 10


def test_same_weights_for_the_same_generator() -> None:
    assert torch.equal(weights("he"), weights("he"))
    before = torch.random.get_rng_state()
    weights("orthogonal", 20, 10)
    layer = nn.Linear(2, 2)
    state = torch.random.get_rng_state()
    init_(layer, "xavier")
    assert torch.equal(state, torch.random.get_rng_state()) and before is not None


def test_errors() -> None:
    with pytest.raises(Unsupported, match="init 'hee' is not known; use one of auto, he"):
        init_(nn.Linear(1, 1), "hee")
    with pytest.raises(ValueError, match="mode must be one of fan_in, fan_out"):
        init_(nn.Linear(1, 1), "he", mode="fan")
