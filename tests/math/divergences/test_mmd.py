"""MMD: worked numbers, populations, estimators, gradients, one implementation with the test."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import torch

from groundstate import divergences as dv
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.divergences.mmd import mmd_of_labels
from groundstate.math.kernels import RBF, Laplacian, Linear, White
from groundstate.math.stats import two_sample

K = RBF(gamma=1.0)
RNG = np.random.default_rng(0)


def test_worked_numbers() -> None:
    assert dv.mmd([0, 1], [2, 4], K) == pytest.approx(0.193036, abs=1e-6)
    assert dv.mmd([0, 1], [2, 4], K, unbiased=False) == pytest.approx(0.999938, abs=1e-6)
    assert dv.mmd([0, 1], [0, 1], K) == pytest.approx(-0.632121, abs=1e-6)
    assert dv.mmd([0, 1], [0, 1], K, unbiased=False) == 0
    a, b = (
        torch.tensor([0.3], dtype=torch.float64, requires_grad=True),
        torch.tensor([1.0]).double(),
    )
    (slope,) = torch.autograd.grad(K(a[:, None], b[:, None]).sum(), a)
    assert float(slope) == pytest.approx(-2 * (0.3 - 1) * math.exp(-0.49))


@pytest.mark.parametrize(("shift", "population"), [(0.0, 0.0), (1.0, 0.162132), (2.0, 0.492535)])
def test_population(shift: float, population: float) -> None:
    """Means over many small samples: the U-statistic is unbiased, the V-statistic too large."""
    X, Y = RNG.normal(size=(400, 40, 1)), RNG.normal(size=(400, 40, 1)) + shift
    u, v = dv.mmd(X, Y, K), dv.mmd(X, Y, K, unbiased=False)
    assert abs(u.mean() - population) < 4 * u.std() / 20
    assert v.mean() - u.mean() > 0.01
    linear = dv.mmd(X.reshape(1, -1, 1), Y.reshape(1, -1, 1), K, method="linear")
    assert float(linear[0]) == pytest.approx(population, abs=0.03)
    features = dv.mmd(X[:, :, 0].ravel(), Y[:, :, 0].ravel(), K, method="features",
                      n_features=8000, random_state=0)  # fmt: skip
    assert features == pytest.approx(population, abs=0.03)


def test_blocks_equal_the_whole_and_batches_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    X = torch.from_numpy(RNG.normal(size=(50, 3))).requires_grad_()
    Y = torch.from_numpy(RNG.normal(size=(40, 3))).requires_grad_()
    whole = dv.mmd(X, Y, K)
    slopes = torch.autograd.grad(whole, (X, Y))
    monkeypatch.setattr(sys.modules["groundstate.math.divergences.mmd"], "_CELLS", 200)
    parts = dv.mmd(X, Y, K)
    torch.testing.assert_close(parts, whole)
    for a, b in zip(torch.autograd.grad(parts, (X, Y)), slopes, strict=True):
        torch.testing.assert_close(a, b)
    batch = RNG.normal(size=(2, 3, 7, 2))
    loop = [[dv.mmd(batch[0, i], batch[1, i], K)] for i in range(3)]
    np.testing.assert_allclose(dv.mmd(batch[0], batch[1], K), np.ravel(loop), atol=1e-12)


def test_kernels() -> None:
    X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=(25, 2)) + 1
    both = dv.mmd(X, Y, [RBF(0.5), RBF(2.0)])
    assert both == pytest.approx(dv.mmd(X, Y, RBF(0.5)) + dv.mmd(X, Y, RBF(2.0)))
    linear = dv.mmd(X, Y, Linear(), unbiased=False)
    assert linear == pytest.approx(((X.mean(0) - Y.mean(0)) ** 2).sum())
    width = dv.median_length_scale(X, Y)
    assert dv.mmd(X, Y) == pytest.approx(dv.mmd(X, Y, RBF(width)))
    pooled = np.concatenate([X, Y])
    off = np.linalg.norm(pooled[:, None] - pooled, axis=-1)[np.triu_indices(55, 1)]
    assert width == pytest.approx(np.median(off))
    noise = dv.mmd(X, Y, RBF(1.0) + White(0.5)) - dv.mmd(X, Y, RBF(1.0))
    assert noise == pytest.approx(0, abs=1e-12)
    kept = dv.mmd(X, Y, RBF(1.0) + White(0.5), unbiased=False) - dv.mmd(
        X, Y, RBF(1.0), unbiased=False
    )
    assert kept == pytest.approx(0.5 / 30 + 0.5 / 25)
    assert dv.median_length_scale(np.zeros((3, 1))) == 1.0


def test_labels_give_the_same_statistic() -> None:
    X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=(9, 2)) + 1
    rows = torch.from_numpy(np.concatenate([X, Y]))
    order = np.stack([RNG.permutation(21) for _ in range(5)])
    labels = torch.zeros(5, 21, dtype=torch.float64)
    for row, some in zip(labels, order, strict=True):
        row[some[:12]] = 1
    for unbiased in (True, False):
        found = mmd_of_labels(K(rows), labels, unbiased)
        for value, some in zip(found, order, strict=True):
            direct = dv.mmd(rows[some[:12]], rows[some[12:]], K, unbiased)
            assert float(value) == pytest.approx(float(direct), abs=1e-12)
    test = two_sample(X, Y, "mmd")
    assert test.statistic == pytest.approx(dv.mmd(X, Y))


def test_gradients_and_mistakes() -> None:
    X = torch.from_numpy(RNG.normal(size=(6, 2))).requires_grad_()
    Y = torch.from_numpy(RNG.normal(size=(5, 2))).requires_grad_()
    for options in ({}, {"unbiased": False}, {"method": "linear"}):
        assert torch.autograd.gradcheck(lambda x, y, o=options: dv.mmd(x, y, K, **o), (X, Y))
    assert torch.autograd.gradcheck(
        lambda x, y: dv.mmd(x, y, K, method="features", random_state=0), (X, Y)
    )
    with pytest.raises(ShapeError, match="same columns"):
        dv.mmd(np.zeros((3, 2)), np.zeros((3, 1)))
    with pytest.raises(ShapeError, match="two rows of each sample"):
        dv.mmd([0.0], [1.0, 2.0], K)
    with pytest.raises(Unsupported, match="one RBF kernel"):
        dv.mmd([0.0, 1.0], [1.0, 2.0], Laplacian(), method="features")
    with pytest.raises(ValueError, match="NaN or infinity"):
        dv.mmd([0.0, np.nan], [1.0, 2.0])
    with pytest.raises(ValueError, match="method must be"):
        dv.mmd([0.0, 1.0], [1.0, 2.0], method="quick")  # type: ignore[arg-type]
