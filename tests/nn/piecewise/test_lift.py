"""The disc problem by hand, dropout, pooling of any size."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from groundstate.data import load
from groundstate.nn import DiscLift, Dropout, PoolHead, floor_ceil, resample_masks


def test_disc_is_lifted_without_mistakes() -> None:
    table = load("disc", n=2000, random_state=3)
    X, y = torch.from_numpy(table.matrix()).double(), np.asarray(table.y)
    inside = DiscLift()(X)[:, 0] > 0
    assert ((~inside).numpy() == (y == 1)).all()  # accuracy 1.0, one threshold on one feature
    assert (floor_ceil(X).numpy() == y).all()
    assert 0.45 < y.mean() < 0.55


def test_the_boundary_belongs_to_the_outside() -> None:
    angle = torch.linspace(0, 6.28, 8, dtype=torch.float64)
    edge = torch.stack([angle.cos(), angle.sin()], 1) * (1 + 1e-12)
    assert bool((DiscLift()(edge) == 0).all()) and bool((floor_ceil(edge) == 1).all())


@pytest.mark.parametrize(("r2", "label"), [(0.0, 0), (0.99, 0), (1.0, 1), (2.5, 1), (7.9, 1)])
def test_two_roundings(r2: float, label: int) -> None:
    x = torch.tensor([[r2**0.5, 0.0]], dtype=torch.float64)
    if r2 == 1.0:
        x = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert floor_ceil(x).item() == label


def test_lifted_disc_is_linearly_separable() -> None:
    from sklearn.svm import LinearSVC

    table = load("disc", n=400)
    X = torch.from_numpy(table.matrix()).double()
    lifted = DiscLift(append=True)(X)
    assert lifted.shape == (400, 3) and torch.equal(lifted[:, :2], X)
    fit = LinearSVC(C=1e6, max_iter=200_000, tol=1e-3).fit(lifted[:, 2:], table.y)
    assert fit.score(lifted[:, 2:], table.y) > 0.98


def test_xor_needs_more_than_a_line() -> None:
    table = load("xor", noise=0.1)
    X, y = table.matrix(), np.asarray(table.y)
    assert ((X[:, 0] * X[:, 1] < 0) == (y == 1)).all()


def test_dropout_keeps_the_mean_and_scales() -> None:
    x = torch.ones(20_000, 4)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        out = Dropout(0.3)(x)
    assert out.mean().item() == pytest.approx(1, abs=0.01)
    assert sorted(out.unique().tolist()) == pytest.approx([0, 1 / 0.7])
    assert torch.equal(Dropout(0.3).eval()(x), x)


def test_dropped_units_get_no_gradient() -> None:
    net = nn.Sequential(
        nn.Linear(3, 8), nn.ReLU(), Dropout(0.5, mask_per_epoch=True), nn.Linear(8, 1)
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net(torch.ones(4, 3)).sum().backward()
    dropped = net[2].mask == 0
    assert 0 < int(dropped.sum()) < 8
    assert net[3].weight.grad[0, dropped].abs().max() == 0
    assert net[0].weight.grad[dropped].abs().max() == 0


def test_the_average_over_all_masks_is_the_scaled_linear_net() -> None:
    g = torch.Generator().manual_seed(0)
    n, p = 8, 0.3
    w, x = torch.randn(n, generator=g).double(), torch.randn(n, generator=g).double()
    total = 0.0
    for mask in product((0.0, 1.0), repeat=n):
        m = torch.tensor(mask, dtype=torch.float64)
        kept = m.sum().item()
        total += (1 - p) ** kept * p ** (n - kept) * float(w @ (x * m)) / (1 - p)
    assert total == pytest.approx(float(w @ x), abs=1e-12)


def test_mask_per_epoch() -> None:
    layer = Dropout(0.5, mask_per_epoch=True)
    x = torch.ones(3, 50)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = layer(x)
        assert torch.equal(layer(x), first) and torch.equal(first[0], first[2])
        resample_masks(nn.Sequential(layer))
        assert layer.mask is None and not torch.equal(layer(x), first)
        fresh = Dropout(0.5)
        assert not torch.equal(fresh(x), fresh(x))


def test_adaptive_pooling() -> None:
    pool = nn.AdaptiveAvgPool1d(3)
    assert pool(torch.arange(1.0, 6.0)[None]).tolist() == [[1.5, 3.0, 4.5]]
    body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), PoolHead(8, 10))
    for size in ((64, 64), (96, 80)):
        assert body(torch.zeros(2, 3, *size)).shape == (2, 10)
    x = torch.randn(2, 8, 5, 7, generator=torch.Generator().manual_seed(0))
    head = PoolHead(8, 4)
    assert torch.allclose(head(x), head.linear(x.mean((2, 3))), atol=1e-6)
