"""Pictures by the chain rule: what a pixel sees, sums to one, steps, digits."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from groundstate import PixelCNN
from groundstate.energy.sequences.pixels import PixelChainEnergy
from groundstate.nn.conv.masked import PixelNet


def shaken(energy: PixelChainEnergy) -> PixelChainEnergy:
    g = torch.Generator().manual_seed(0)
    energy.double()
    with torch.no_grad():
        for p in energy.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=g, dtype=torch.float64))
    return energy


@pytest.mark.parametrize("c", [1, 3])
def test_a_pixel_sees_what_came_before_it_alone(c: int) -> None:
    net = PixelNet((c, 5, 5), 2, 24, 2).double()
    x = torch.randn(1, c, 5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    J = torch.autograd.functional.jacobian(net, x)[0, :, :, :, :, 0]  # (size, C, H, W, C, H, W)
    seen = J.abs().amax(0).reshape(c, 25, c, 25)
    for out, place in product(range(c), range(25)):
        for channel, source in product(range(c), range(25)):
            before = source < place or (source == place and channel < out)
            if not before:
                assert seen[out, place, channel, source] == 0
    middle = 12
    assert (seen[0, middle, :, [middle - 1, middle - 5]] > 0).all()  # left, and above
    if c == 3:
        assert (seen[2, middle, :2, middle] > 0).all()  # blue sees red and green


@pytest.mark.parametrize("output", ["softmax", "logistic"])
@pytest.mark.parametrize(("shape", "levels"), [((1, 2, 3), 3), ((3, 1, 2), 2)])
def test_all_pictures_sum_to_one(output: str, shape: Any, levels: int) -> None:
    e = shaken(PixelChainEnergy(shape, levels, 6, 2, output=output, components=2))
    every = e.spaces["x"].enumerate()
    assert e.log_prob(every).exp().sum().item() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("output", ["softmax", "logistic"])
@pytest.mark.parametrize("c", [1, 3])
def test_steps_are_the_whole_pass(output: str, c: int) -> None:
    e = shaken(PixelChainEnergy((c, 4, 3), 5, 6, 2, output=output, context=2))
    y = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x = e.ancestral(6, generator=torch.Generator().manual_seed(0), y=y)["x"]
    again, log_p = e.complete(x, torch.zeros_like(x, dtype=torch.bool), y)
    assert torch.equal(again, x)
    torch.testing.assert_close(log_p, e.log_prob(x, y=y))


def test_a_mixture_knows_its_edges() -> None:
    e = PixelChainEnergy((1, 1, 1), 256, 2, 0, output="logistic", components=1).double()
    out = torch.tensor([[5.0, -2.0, 0.0], [-5.0, -2.0, 0.0], [0.3, -5.0, 0.0]]).double()
    p = e.log_probs(out[:, :, None])[:, :, 0].exp()
    torch.testing.assert_close(p.sum(1), torch.ones(3, dtype=torch.float64))
    assert p[0].argmax() == 255 and p[1].argmax() == 0
    assert p[2].argmax() == round((0.3 + 1) / 2 * 255)


def digits() -> Any:
    return load_digits().images


@pytest.mark.slow
@pytest.mark.parametrize("output", ["softmax", "logistic"])
def test_digits_are_shorter_than_independent_pixels(output: str) -> None:
    X = digits()
    train, test = X[:1400], X[1400:]
    counts = np.stack([(train == v).sum(0) for v in range(17)]) + 1.0
    log_p = np.log2(counts / counts.sum(0))
    at = test.astype(int)
    i, j = np.meshgrid(range(8), range(8), indexing="ij")
    independent = -log_p[at, i, j].mean()
    model = PixelCNN(output=output, features=24, n_layers=3, max_iter=6, random_state=0).fit(train)
    assert model.bits_per_dim(test) < independent - 0.2


def test_missing_rows_of_a_picture() -> None:
    X = np.zeros((120, 4, 4), int)
    X[np.arange(120), :, np.arange(120) % 4] = 1
    model = PixelCNN(features=16, n_layers=2, learning_rate_init=0.01, max_iter=25, random_state=0)
    model.fit(X)
    gaps = X[:8].astype(float)
    gaps[:, 2:] = np.nan  # the lower half follows
    np.testing.assert_array_equal(model.impute(gaps, "sample", random_state=0), X[:8])
    above = X[:8].astype(float)
    above[:, :2] = np.nan  # the upper half is weighed by the lower one
    found = model.impute(above, "minimise", random_state=0)
    assert (found == X[:8]).mean() > 0.95


def test_labels_and_temperatures() -> None:
    y = np.arange(120) % 4
    X = np.zeros((120, 4, 4), int)
    X[np.arange(120), :, y] = 1
    model = PixelCNN(features=16, n_layers=1, learning_rate_init=0.02, max_iter=25, random_state=0)
    model.fit(X, y)
    drawn = model.sample(40, y=2, T=0.5, random_state=0)
    assert (drawn[:, :, 2] == 1).mean() > 0.9
    assert (model.infer({"x": X[:20]}, "y") == y[:20]).mean() > 0.9


def test_real_pixels_are_cut_into_steps() -> None:
    X = np.random.default_rng(0).random((40, 2, 2))
    model = PixelCNN(4, features=4, n_layers=1, max_iter=2, random_state=0).fit(X)
    drawn = model.sample(20, random_state=0)
    assert len(np.unique(drawn)) <= 4 and (drawn > 0).all() and (drawn < 1).all()
    # a density of the square: constant in each of 4**4 cells, and 1 in all
    middle = np.unique(model.sample(500, random_state=0))
    cells = np.array(list(product(middle, repeat=4))).reshape(-1, 2, 2)
    width = middle[1] - middle[0]
    assert np.exp(model.score_samples(cells)).sum() * width**4 == pytest.approx(1, abs=1e-4)
