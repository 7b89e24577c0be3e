"""Signals through networks: variance recursion, vanishing, exploding, dead units, shattering."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import NetClassEnergy
from groundstate.learn import Probe, SoftMin, Stochastic, fit, gradient_autocorrelation, probe


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def deep(depth: int, width: int, variance: float, activation: type[nn.Module]) -> nn.Sequential:
    g = seeded()
    layers: list[nn.Module] = []
    for _ in range(depth):
        layer = nn.Linear(width, width)
        with torch.no_grad():
            layer.weight.copy_(variance**0.5 * torch.randn(width, width, generator=g))
            layer.bias.zero_()
        layers += [layer, activation()]
    return nn.Sequential(*layers[:-1]).double()


def test_variance_recursion() -> None:
    """σ'² = ½ D σ_Ω² σ²: with D = 100 and σ_Ω² = .02 the variance is kept."""
    x = torch.randn(2000, 100, generator=seeded(1), dtype=torch.float64)
    for variance, factor in ((0.02, 1.0), (0.01, 0.5), (0.04, 2.0)):
        signals = probe(deep(2, 100, variance, nn.ReLU), x)
        rows = [row.variance for row in signals.layers if row.kind == "Linear"]
        assert rows[1] / rows[0] == pytest.approx(factor, rel=0.1)


def test_scale_a_gives_a_to_the_depth() -> None:
    """Linear layers a·I: activations grow as a^L, gradients shrink or grow alike."""
    for a in (0.5, 3.0):
        net = nn.Sequential(*[nn.Linear(4, 4, bias=False) for _ in range(6)]).double()
        with torch.no_grad():
            for layer in net:
                layer.weight.copy_(a * torch.eye(4))
        x = torch.randn(50, 4, generator=seeded(), dtype=torch.float64)
        signals = probe(net, x)
        first, last = signals.layers[0], signals.layers[-1]
        assert last.variance / first.variance == pytest.approx(a ** (2 * 5))
        assert first.gradient / last.gradient == pytest.approx(a**5)


def test_logistic_layers_lose_at_least_three_quarters_each() -> None:
    net = nn.Sequential(
        *[m for _ in range(10) for m in (nn.Linear(1, 1, bias=False), nn.Sigmoid())]
    ).double()
    with torch.no_grad():
        for layer in net[::2]:
            layer.weight.fill_(1.0)
    x = torch.linspace(-1, 1, 21, dtype=torch.float64)[:, None]
    signals = probe(net, x)
    share = signals.layers[0].gradient / signals.layers[-1].gradient
    assert share <= 0.25**10 and pytest.approx(9.54e-7, rel=1e-3) == 0.25**10
    assert signals.warnings and signals.warnings[0].startswith("gradients vanish")


def test_exploding_is_told() -> None:
    signals = probe(deep(8, 20, 5.0, nn.Identity), torch.randn(30, 20, dtype=torch.float64))
    assert signals.exploding > 1e6 and "explode" in " ".join(signals.warnings)


def test_a_dead_unit_gets_no_gradient() -> None:
    net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    with torch.no_grad():
        net[0].bias[1:] = -100.0  # z < 0 on all data
        net[0].bias[0] = 10.0
    x = torch.randn(64, 2, generator=seeded())
    net(x).square().mean().backward()
    assert bool((net[0].weight.grad[1:] == 0).all()) and bool((net[0].weight.grad[0] != 0).all())
    signals = probe(net, x, lambda out: out.square())
    assert signals.layers[1].dead == 0.75
    assert signals.warnings == [
        "75% of the units of 1 are dead; lower the learning rate or use a leaky activation"
    ]


def test_images_count_channels_as_units() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU())
    with torch.no_grad():
        net[0].bias.copy_(torch.tensor([-100.0, 100.0, -100.0, 100.0]))
    signals = probe(net, torch.randn(8, 1, 6, 6, generator=seeded()))
    assert signals.layers[1].dead == 0.5


def test_saturation_and_the_ratio() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].bias.fill_(5.0)
    x = torch.randn(16, 2, generator=seeded(), dtype=torch.float64)
    signals = probe(net, x, lambda out: out)
    assert signals.layers[1].saturated == 1.0
    net.zero_grad()
    net(x).mean().backward()
    last = net[2].weight
    assert signals.layers[2].ratio == pytest.approx(float(last.grad.norm() / last.detach().norm()))


def test_the_network_is_left_as_it_was() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    before = {k: v.clone() for k, v in net.state_dict().items()}
    probe(net, torch.randn(8, 3))
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert all(not m._forward_hooks for m in net.modules())
    assert all(p.grad is None for p in net.parameters()) and net.training
    with pytest.raises(ValueError, match="has no layers whose outputs depend"):
        probe(nn.Embedding(3, 2).requires_grad_(False), torch.zeros(2, dtype=torch.int64))


def test_an_energy_with_its_rule_and_the_callback() -> None:
    x = torch.randn(40, 2, generator=seeded())
    data = {"x": x, "y": (x[:, 0] > 0).long()}
    energy = NetClassEnergy(2, 2, (8, 8), "relu")
    signals = probe(energy, data, SoftMin())
    assert [row.kind for row in signals.layers].count("Linear") == 3
    watch = Probe(every=2)
    fit(energy, data, SoftMin(), Stochastic(max_epochs=4, tol=None), callbacks=[watch])
    assert [epoch for epoch, _ in watch.signals] == [2, 4]


def test_plot_has_two_log_panels() -> None:
    fig = probe(deep(3, 8, 0.25, nn.ReLU), torch.randn(9, 8, dtype=torch.float64)).plot()
    assert [ax.get_yscale() for ax in fig.axes] == ["log", "log"]
    assert len(fig.axes[0].lines[0].get_xdata()) == 5


def relu_net(depth: int, width: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for i in range(depth):
        layer = nn.Linear(1 if i == 0 else width, width)
        nn.init.kaiming_normal_(layer.weight)
        nn.init.normal_(layer.bias, 0, 0.5)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 1)).double()


def test_deep_nets_have_shattered_gradients() -> None:
    line = torch.linspace(-2, 2, 256, dtype=torch.float64)
    shallow = gradient_autocorrelation([relu_net(1, 50, s) for s in range(5)], line)
    long = gradient_autocorrelation([relu_net(24, 50, s) for s in range(5)], line)
    assert float(shallow[0]) == pytest.approx(1.0) == float(long[0])
    assert float(shallow[1:8].mean()) > float(long[1:8].mean()) + 0.1


def test_autocorrelation_by_hand() -> None:
    class Square(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return 0.5 * x**2  # slope x

    line = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    assert gradient_autocorrelation(Square(), line).tolist() == pytest.approx([1.0, 0.0, -0.5])
    with pytest.raises(ValueError, match="evenly spaced"):
        gradient_autocorrelation(Square(), torch.tensor([0.0, 1.0, 3.0]))
