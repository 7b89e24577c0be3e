"""Diagnosis: one planted fault at a time, in curves and in networks; a good run has none."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import LinearEnergy, NetClassEnergy
from groundstate.errors import Unsupported
from groundstate.learn import (
    EarlyStopping,
    History,
    SoftMin,
    Stochastic,
    diagnose,
    find_lr,
    fit,
    sgd,
    sharpness,
)


def falling(n: int = 40, floor: float = 0.05, rate: float = 0.15) -> list[float]:
    return [floor + math.exp(-rate * t) for t in range(n)]


def history(values: list[float], **kwargs: object) -> History:
    return History(objective=values, n_iter=len(values), **kwargs)  # type: ignore[arg-type]


CURVES = {
    "diverging": (history([1.0, 0.8, 0.7, 1.5, 4.0, 20.0]), None),
    "underfitting": (history([1.0] + [0.97 - 1e-4 * t for t in range(30)]), None),
    "overfitting": (history(falling()), [0.1 + v + 0.01 * t for t, v in enumerate(falling())]),
    "plateau": (history(falling(60, rate=1.0)), None),
    "learning rate too high": (
        history([1.0 - 0.02 * t + 0.1 * (-1) ** t for t in range(30)]),
        None,
    ),
    "learning rate too low": (history([1.0 - 0.01 * t for t in range(40)]), None),
}


@pytest.mark.parametrize("name", sorted(CURVES))
def test_curves(name: str) -> None:
    curve, held = CURVES[name]
    found = diagnose(curve, validation=held)
    assert name in found.names
    finding = found[name]
    assert finding.advice and finding.threshold > 0 and math.isfinite(finding.number)
    assert str(finding).startswith(name) and f"threshold {finding.threshold:.3g}" in str(found)


def test_a_good_curve_has_no_findings() -> None:
    good = falling(30, rate=0.25)
    found = diagnose(history(good), validation=[v + 0.02 for v in good])
    assert not found and str(found) == "nothing is wrong"


def test_a_loss_that_is_not_finite_is_divergence() -> None:
    assert diagnose(history([1.0, 0.5, math.nan])).names == ("diverging",)


def test_steps_are_gathered_to_epochs() -> None:
    noisy = [v + 0.02 * (-1) ** i for v in falling(30, rate=0.25) for i in range(4)]
    assert not diagnose(History(objective=noisy, n_iter=30))


def data(n: int = 200, noise: float = 0.0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=g)
    return {"x": x, "y": (x[:, 0] + noise * torch.randn(n, generator=g) > 0).long()}


def test_overfitting_of_a_real_run() -> None:
    held = data(400, 1.0)
    held = {k: v[200:] for k, v in held.items()}
    train = {k: v[:60] for k, v in data(400, 1.0).items()}
    energy = NetClassEnergy(4, 2, (64,))
    solver = Stochastic(lr=0.03, max_epochs=150, tol=None)
    stop = EarlyStopping(held, patience=1000, restore_best=False)
    result = fit(energy, train, SoftMin(), solver, callbacks=[stop], random_state=0)
    found = diagnose(result, energy=energy, data=train, rule=SoftMin())
    assert found.names == ("overfitting",)


def planted(kind: str) -> tuple[nn.Module, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=g)

    def layer(scale: float, bias: float = 0.0) -> nn.Linear:
        linear = nn.Linear(8, 8)
        with torch.no_grad():
            linear.weight.copy_(scale * torch.randn(8, 8, generator=g))
            linear.bias.fill_(bias)
        return linear

    if kind == "dead units":
        return nn.Sequential(layer(0.5, -30.0), nn.ReLU(), layer(0.5)), x
    if kind == "saturated units":
        return nn.Sequential(layer(20.0), nn.Tanh(), layer(0.5)), x
    if kind == "vanishing gradients":
        blocks = [m for _ in range(10) for m in (layer(0.3), nn.Sigmoid())]
        return nn.Sequential(*blocks, layer(0.5)), x
    if kind == "exploding gradients":
        return nn.Sequential(*[layer(5.0) for _ in range(8)]), x
    net = nn.Sequential(layer(0.35), nn.ReLU(), layer(0.35))
    if kind == "unscaled inputs":
        return net, x * torch.tensor([1.0] * 7 + [1e4])
    return net, x


@pytest.mark.parametrize(
    "kind",
    ["dead units", "saturated units", "vanishing gradients", "exploding gradients",
     "unscaled inputs", "nothing"],
)  # fmt: skip
def test_planted_networks(kind: str) -> None:
    net, x = planted(kind)
    found = diagnose(net, data=x)
    assert found.names == (() if kind == "nothing" else (kind,))
    assert found.signals is not None


def test_offsets_and_tiny_inputs_are_unscaled() -> None:
    net, x = planted("nothing")
    for changed in (x + 1000.0, 1e-4 * x, 1e4 * x):
        names = diagnose(net, data=changed).names
        assert "unscaled inputs" in names


def test_rates_against_two_over_l() -> None:
    """½ mean (10w)²: L = 100, so descent is stable below .02."""
    net, x = nn.Linear(1, 1, bias=False).double(), torch.full((4, 1), 10.0, dtype=torch.float64)

    def loss(out: Tensor) -> Tensor:
        return 0.5 * out.square()

    assert sharpness(net, x, loss) == pytest.approx(100.0)
    for lr, name in ((0.03, "learning rate too high"), (1e-5, "learning rate too low")):
        found = diagnose(net, data=x, rule=loss, lr=lr)
        assert found.largest_rate == pytest.approx(0.02)
        assert found[name].number == pytest.approx(lr / 0.02)
    assert not diagnose(net, data=x, rule=loss, lr=0.01)


def test_sharpness_of_softmax_regression() -> None:
    """Equal to the largest eigenvalue of the Hessian formed entry by entry."""
    rows = {"x": data()["x"].double(), "y": data()["y"]}
    energy = LinearEnergy(4, 2).double()
    found = sharpness(energy, rows, SoftMin(), iterations=200, tol=1e-9)
    theta = torch.cat([p.detach().reshape(-1) for p in energy.parameters()])
    shapes = {n: p.shape for n, p in energy.named_parameters()}

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.energy = energy

        def forward(self) -> Tensor:
            return SoftMin().mean(self.energy, rows)[0]

    def value(flat: Tensor) -> Tensor:
        parts = flat.split([s.numel() for s in shapes.values()])
        named = {f"energy.{n}": v.view(s) for (n, s), v in zip(shapes.items(), parts, strict=True)}
        return torch.func.functional_call(Loss(), named, ())

    H = torch.autograd.functional.hessian(value, theta)
    assert found == pytest.approx(float(torch.linalg.eigvalsh(H)[-1]), rel=1e-4)


def test_descent_is_stable_below_and_not_above() -> None:
    rows = {"x": 3 * data()["x"].double(), "y": data(noise=2.0)["y"]}
    energy = LinearEnergy(4, 2).double()
    largest = 2 / sharpness(energy, rows, SoftMin(), iterations=100)
    first = Stochastic(sgd, lr=0.9 * largest, batch_size=None, max_epochs=30, tol=None)
    curve = fit(energy, rows, SoftMin(), first).objective
    assert all(b <= a + 1e-12 for a, b in pairwise(curve))


def test_what_cannot_be_diagnosed_is_told() -> None:
    with pytest.raises(Unsupported, match="diagnose needs a History, a fitted estimator"):
        diagnose(3)
    with pytest.raises(KeyError, match="found were overfitting"):
        diagnose(*[CURVES["overfitting"][0]], validation=CURVES["overfitting"][1])["plateau"]


def test_find_lr_marks_a_usable_range() -> None:
    rows = data()
    energy = NetClassEnergy(4, 2, (16,))
    before = {k: v.clone() for k, v in energy.state_dict().items()}
    curve = find_lr(energy, rows, SoftMin(), Stochastic(batch_size=32), random_state=0)
    assert all(torch.equal(v, before[k]) for k, v in energy.state_dict().items())
    assert 1e-3 <= curve.suggestion <= curve.largest <= 1.0
    assert curve.rates == sorted(curve.rates) and len(curve.rates) == len(curve.losses)

    def after(lr: float) -> float:
        one = NetClassEnergy(4, 2, (16,), generator=torch.Generator().manual_seed(0))
        solver = Stochastic(lr=lr, batch_size=32, max_epochs=10, tol=None)
        return sum(fit(one, rows, SoftMin(), solver, random_state=0).objective[-7:]) / 7

    assert after(curve.suggestion) < min(after(1e-6), after(10.0))
    assert curve.plot().axes[0].get_xscale() == "log"
    with pytest.raises(ValueError, match="0 < low < high, got low=1.0, high=0.1"):
        find_lr(energy, rows, SoftMin(), low=1.0, high=0.1)


def test_find_lr_survives_a_blow_up() -> None:
    rows = {"x": 1e3 * data()["x"], "y": data(noise=3.0)["y"]}
    solver = Stochastic(sgd, batch_size=16)
    curve = find_lr(LinearEnergy(4, 2), rows, SoftMin(), solver, high=1e30, random_state=0)
    assert math.isfinite(curve.suggestion) and all(map(math.isfinite, curve.losses))
