"""Noise on inputs, weights and labels, and dropout: training only, seeded, right in the mean."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from groundstate.nn import Dropout
from groundstate.nn.blocks.noise import InputNoise, LabelNoise, WeightNoise, smooth_labels

F64 = torch.float64


def g(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_input_noise_is_an_l2_penalty_in_expectation() -> None:
    """E mean(y − wᵀ(x+σε))² = mean(y − wᵀx)² + σ²‖w‖², so λ_mean = σ²."""
    x = torch.randn(40, 3, generator=g(), dtype=F64)
    y = torch.randn(40, generator=g(1), dtype=F64)
    w = torch.tensor([1.0, -2.0, 0.5], dtype=F64)
    sigma = 0.4
    noise = InputNoise(sigma, generator=g(2))
    losses = torch.stack([(y - noise(x) @ w).square().mean() for _ in range(4000)])
    wanted = (y - x @ w).square().mean() + sigma**2 * w.square().sum()
    error = losses.std() / 4000**0.5
    assert abs(float(losses.mean() - wanted)) < 4 * float(error)


def test_training_with_input_noise_is_ridge() -> None:
    """Full-batch descent with fresh noise wanders about the ridge solution with λ = σ²."""
    x = torch.randn(200, 3, generator=g(), dtype=F64)
    y = x @ torch.tensor([1.0, -2.0, 0.5], dtype=F64)
    w = torch.zeros(3, dtype=F64)
    noise, mean = InputNoise(0.7, generator=g(3)), torch.zeros(3, dtype=F64)
    for step in range(3000):
        z = noise(x)
        w = w - 0.05 * z.T @ (z @ w - y) / 200
        if step >= 1000:
            mean += w / 2000
    ridge = torch.linalg.solve(x.T @ x / 200 + 0.49 * torch.eye(3, dtype=F64), x.T @ y / 200)
    torch.testing.assert_close(mean, ridge, atol=0.02, rtol=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: InputNoise(0.5, generator=g(seed)),
        lambda seed: WeightNoise(nn.Linear(3, 3), 0.5, generator=g(seed)),
    ],
    ids=["InputNoise", "WeightNoise"],
)
def test_seeded_and_silent_in_evaluation(make) -> None:
    x = torch.ones(4, 3)
    torch.manual_seed(0)
    first = make(7)
    torch.manual_seed(0)
    second = make(7)
    a, b = first(x), second(x)
    assert torch.equal(a, b) and not torch.equal(a, first(x))
    clean = first.eval()(x)
    assert torch.equal(clean, first(x)) and clean.shape == a.shape


def test_weight_noise_moves_clean_weights_by_the_noisy_gradient() -> None:
    layer = WeightNoise(nn.Linear(2, 1, bias=False).double(), 0.1, generator=g(5))
    x = torch.ones(1, 2, dtype=F64)
    before = layer.module.weight.detach().clone()
    noise = torch.randn(1, 2, generator=g(5), dtype=F64)
    out = layer(x)
    torch.testing.assert_close(out.detach(), x @ (before + 0.1 * noise).T)
    out.square().sum().backward()
    torch.testing.assert_close(layer.module.weight.grad, 2 * out.detach() * x)
    assert torch.equal(layer.module.weight.detach(), before)


def test_weight_noise_scales_and_leaves_biases() -> None:
    linear = nn.Linear(50, 50)
    with torch.no_grad():
        linear.weight.fill_(10.0)
    x = torch.zeros(3, 50)
    layer = WeightNoise(linear, 0.1, relative=True, generator=g())
    assert torch.equal(layer(x), linear(x))  # biases are clean
    one = torch.eye(50)
    spread = (layer(one) - linear(one)).std()
    assert float(spread.detach()) == pytest.approx(1.0, rel=0.1)
    loud = WeightNoise(linear, 0.1, biases=True, generator=g())
    assert not torch.equal(loud(x), linear(x))


def test_label_noise() -> None:
    y = torch.arange(3).repeat(2000)
    noise = LabelNoise(0.3, 3, generator=g())
    changed = noise(y)
    assert float((changed != y).double().mean()) == pytest.approx(0.3, abs=0.02)
    assert set(changed.tolist()) == {0, 1, 2}
    others = torch.bincount((changed - y) % 3, minlength=3)[1:].double()
    assert float(others[0] / others.sum()) == pytest.approx(0.5, abs=0.05)
    unlabelled = torch.full((5,), -1)
    assert torch.equal(LabelNoise(1.0, 3)(unlabelled), unlabelled)
    assert torch.equal(noise.eval()(y), y)


def test_label_smoothing_is_that_of_torch() -> None:
    s = torch.tensor([[2.0, 1.0, 0.1]], dtype=F64)
    target = smooth_labels(torch.tensor([0]), 3, 0.1).double()
    loss = nn.functional.cross_entropy(s, target)
    assert float(loss) == pytest.approx(0.513697, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InputNoise(-1.0), "sigma must be a standard deviation, at least 0, got -1"),
        (lambda: LabelNoise(2.0, 3), r"p must be a probability in \[0, 1\], got 2"),
        (lambda: LabelNoise(0.1, 1), "k >= 2 classes, got k=1"),
        (lambda: smooth_labels(torch.tensor([0]), 2, 3.0), r"smoothing must be in \[0, 1\]"),
    ],
)
def test_wrong_settings(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# --- dropout -----------------------------------------------------------------------------------


def test_mean_over_all_masks_is_the_scaled_net() -> None:
    """For a linear net the average over 2ⁿ masks of w·(m/(1−p))x is w·x, exactly."""
    n, p = 6, 0.3
    x = torch.randn(n, generator=g(), dtype=F64)
    w = torch.randn(n, generator=g(1), dtype=F64)
    total = torch.zeros((), dtype=F64)
    for mask in itertools.product((0.0, 1.0), repeat=n):
        m = torch.tensor(mask, dtype=F64)
        kept = float(m.sum())
        total += (1 - p) ** kept * p ** (n - kept) * (w @ (m / (1 - p) * x))
    torch.testing.assert_close(total, w @ x)


@pytest.mark.parametrize("lasting", [False, True])
def test_dropout_scales_and_is_silent_in_evaluation(lasting: bool) -> None:
    torch.manual_seed(0)
    layer = Dropout(0.25, mask_per_epoch=lasting)
    x = torch.ones(4, 5000)
    out = layer(x)
    assert out.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float(out.mean()) == pytest.approx(1.0, abs=0.05)
    assert torch.equal(layer.eval()(x), x)
    layer.train()
    same = torch.equal(layer(x), layer(x))
    assert same == lasting
    layer.resample()
    if lasting:
        assert not torch.equal(layer(x), out)


def test_dropped_units_get_no_gradient() -> None:
    torch.manual_seed(1)
    layer = Dropout(0.5, mask_per_epoch=True)
    first, second = nn.Linear(3, 8), nn.Linear(8, 1)
    x = torch.randn(16, 3, generator=g())
    h = layer(first(x))
    second(h).square().mean().backward()
    dropped = layer.mask == 0
    assert 0 < int(dropped.sum()) < 8
    assert bool((first.weight.grad[dropped] == 0).all())
    assert bool((second.weight.grad[0, dropped] == 0).all())
    assert bool((first.weight.grad[~dropped] != 0).any(1).all())
