"""Activations: the metadata of every row is what finite differences say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import ACTIVATIONS, HIDDEN, Activation, Maxout, activation
from groundstate.nn.blocks.activations import is_activation, recommended_init

ROWS = list(ACTIVATIONS.values())
SCALAR = [row for row in ROWS if row.elementwise]


def at(name: str, *z: float) -> list[float]:
    return activation(name)(torch.tensor(z, dtype=torch.float64)).tolist()


def grid(n: int = 400_001, radius: float = 40.0) -> Tensor:
    return torch.linspace(-radius, radius, n, dtype=torch.float64)


def names(row: Activation) -> str:
    return row.name


def test_the_list() -> None:
    assert set(ACTIVATIONS) == {
        "identity", "step", "sigmoid", "tanh", "relu", "leaky_relu", "elu", "gelu", "silu",
        "softplus", "maxout", "softmax", "log_softmax", "sin", "bump",
    }  # fmt: skip
    assert set(HIDDEN) == set(ACTIVATIONS) - {"step", "maxout", "softmax", "log_softmax"}


def test_worked_values() -> None:
    assert at("sigmoid", 1.0) == pytest.approx([0.731059], abs=5e-7)
    assert at("softplus", 0.0) == pytest.approx([0.693147], abs=5e-7)
    assert at("elu", -1.0) == pytest.approx([-0.632121], abs=5e-7)
    assert at("gelu", 1.0) == pytest.approx([0.841345], abs=5e-7)
    assert at("leaky_relu", -1.0, 2.0) == pytest.approx([-0.01, 2.0])
    assert at("step", -0.1, 0.0, 0.1) == [0.0, 1.0, 1.0]
    assert at("bump", 0.0, 1.0) == pytest.approx([1.0, math.exp(-1)])
    assert activation("leaky_relu", negative_slope=0.2)(torch.tensor(-1.0)).item() == pytest.approx(
        -0.2
    )


def test_relations_between_them() -> None:
    z = grid(2001, 8.0).requires_grad_(True)
    sigmoid = torch.sigmoid
    assert torch.allclose(activation("tanh")(z), 2 * sigmoid(2 * z) - 1, atol=1e-12)
    (slope,) = torch.autograd.grad(activation("softplus")(z).sum(), z)
    assert torch.allclose(slope, sigmoid(z), atol=1e-9)  # torch's softplus is linear beyond 20
    two = torch.stack([torch.zeros_like(z), z], -1)
    assert torch.equal(Maxout(2)(two)[:, 0], torch.relu(z))
    assert torch.allclose(activation("softmax")(two)[:, 1], sigmoid(z), atol=1e-12)
    assert torch.allclose(activation("log_softmax")(two).exp(), activation("softmax")(two))


@pytest.mark.parametrize(
    ("name", "low", "where"), [("gelu", -0.169971, -0.751792), ("silu", -0.278465, -1.278465)]
)
def test_minima(name: str, low: float, where: float) -> None:
    found = minimize_scalar(
        lambda z: at(name, z)[0], bounds=(-3, 0), method="bounded", options={"xatol": 1e-10}
    )
    assert found.fun == pytest.approx(low, abs=5e-7) and found.x == pytest.approx(where, abs=5e-6)
    assert ACTIVATIONS[name].low == pytest.approx(found.fun, abs=1e-12)


@pytest.mark.parametrize("row", SCALAR, ids=names)
def test_range(row: Activation) -> None:
    values = row()(grid())
    assert values.min() >= row.low - 1e-12 and values.max() <= row.high + 1e-12
    low = (
        row()(torch.tensor([-1e6, -40.0], dtype=torch.float64)).min()
        if row.low == -math.inf
        else None
    )
    assert low is None or low < -1e3  # an infinite end is approached
    if row.low > -math.inf:
        assert values.min() == pytest.approx(row.low, abs=1e-6)
    if row.high < math.inf:
        assert values.max() == pytest.approx(row.high, abs=1e-6)
    else:
        assert values.max() > 39


@pytest.mark.parametrize("row", SCALAR, ids=names)
def test_monotone(row: Activation) -> None:
    steps = row()(grid()).diff()
    assert bool((steps >= -1e-12).all()) == row.monotone


@pytest.mark.parametrize("row", SCALAR, ids=names)
def test_derivative_bound(row: Activation) -> None:
    z = grid(800_001, 40.0)
    slopes = row()(z).diff().abs() / z.diff()
    if row.bound == math.inf:
        assert slopes.max() > 5e3  # a jump: the quotient grows with 1/h
    else:
        assert slopes.max() == pytest.approx(row.bound, abs=1e-6)
        v = z[::100].clone().requires_grad_(True)
        (exact,) = torch.autograd.grad(row()(v).sum(), v)
        assert exact.abs().max() <= row.bound + 1e-9


@pytest.mark.parametrize("row", SCALAR, ids=names)
def test_continuity_class(row: Activation) -> None:
    """The first derivative that jumps, seen by differences that shrink or stay with h."""
    order = 3 if row.smooth == math.inf else int(row.smooth) + 1
    where = row.kinks or (0.0, 0.7, -1.3)
    for centre in where:
        jumps = [_jump(row, centre, k, h=1e-3) for k in range(order + 1)]
        for k, jump in enumerate(jumps):
            if row.smooth == math.inf or k <= row.smooth:
                assert jump < 0.1, (k, jump)
            else:
                assert jump > 0.4, (k, jump)


def _jump(row: Activation, centre: float, k: int, h: float) -> float:
    """Difference of the one-sided k-th derivatives at a point, by k-th differences."""
    left = centre - 1e-9 - h * torch.arange(k, -1, -1, dtype=torch.float64)
    right = centre + h * torch.arange(k + 1, dtype=torch.float64)
    a, b = (
        row()(side).diff(n=k)[0].item() / h**k if k else row()(side)[0].item()
        for side in (left, right)
    )
    return abs(a - b)


def test_elu_is_smooth_for_alpha_one_only() -> None:
    h = 1e-6
    for alpha, kink in ((1.0, 0.0), (0.5, 0.5), (2.0, 1.0)):
        f = activation("elu", alpha=alpha)
        left, mid, right = f(torch.tensor([-h, 0.0, h], dtype=torch.float64)).tolist()
        assert abs((right - mid) - (mid - left)) / h == pytest.approx(kink, abs=1e-5)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_jacobian_entries_are_bounded(name: str) -> None:
    row = ACTIVATIONS[name]
    z = 5 * torch.randn(200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z[0] = torch.tensor([0.0, 0.0, -50.0])  # two equal probabilities: p(1 − p) = ¼
    J = torch.stack([torch.autograd.functional.jacobian(row(), v) for v in z])
    assert J.abs().max() <= row.bound + 1e-12
    assert J.abs().max() == pytest.approx(row.bound, abs=1e-3)
    out = row()(z)
    assert out.max() <= row.high and out.min() >= row.low


@pytest.mark.parametrize("name", HIDDEN)
def test_recommended_init(name: str) -> None:
    rectifiers = {"relu", "leaky_relu", "elu", "gelu", "silu", "softplus"}
    assert ACTIVATIONS[name].init == ("he" if name in rectifiers else "xavier")
    assert recommended_init(activation(name)) == ACTIVATIONS[name].init


def test_activations_are_told_from_layers() -> None:
    assert all(is_activation(row()) for row in ROWS if row.name != "identity")
    others = [nn.Linear(1, 1), nn.Dropout(), nn.MultiheadAttention(2, 1), nn.BatchNorm1d(1)]
    assert not any(is_activation(m) for m in others)
    assert recommended_init(nn.PReLU()) == "he" and recommended_init(None) == "xavier"


def test_step_has_a_zero_gradient_not_none() -> None:
    z = torch.tensor([-1.0, 1.0], requires_grad=True)
    (slope,) = torch.autograd.grad(activation("step")(z).sum(), z)
    assert slope.tolist() == [0.0, 0.0]


def test_rectified_derivative_at_zero_is_zero() -> None:
    z = torch.zeros(1, requires_grad=True)
    (slope,) = torch.autograd.grad(activation("relu")(z).sum(), z)
    assert slope.item() == 0.0


def test_errors() -> None:
    with pytest.raises(
        Unsupported, match="activation 'rele' is not known; use one of identity, step"
    ):
        activation("rele")
    with pytest.raises(ShapeError, match=r"multiple of 3, got \(2, 4\)"):
        Maxout(3)(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="got k=0"):
        Maxout(0)
    assert np.isfinite(at("softplus", 800.0)).all()
