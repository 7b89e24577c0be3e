"""RowSums: pieces, shards of weight and far origins give the covariance of all rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate.learn.solvers.latent.factors.row_sums import RowSums


@pytest.mark.parametrize("shape", [(5, 3), (900, 7), (150_000, 3), (70, 200)])
@pytest.mark.parametrize("origin", [0.0, 3.0, 1e6])
def test_any_pieces_give_the_covariance(shape: tuple[int, int], origin: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.arange(1, shape[1] + 1) + origin
    expected = np.atleast_2d(np.cov(X.T, ddof=0))
    for cuts in ([], [1], [2, 3]):
        found = RowSums(shape[1])
        for part in np.split(X, cuts):
            found.update(part)
        np.testing.assert_allclose(
            found.covariance(), expected, rtol=1e-7, atol=1e-8 * shape[1] ** 2
        )
        np.testing.assert_allclose(found.mean, X.mean(0), rtol=1e-12)
        assert found.rows == len(X)


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(3000, 4)), rng.integers(0, 4, 3000)
    a, b = RowSums(4).update(X, w), RowSums(4).update(np.repeat(X, w, 0))
    np.testing.assert_allclose(a.scatter, b.scatter, rtol=1e-10, atol=1e-8)
    assert a.weight == b.weight == w.sum()


def test_rows_whose_mean_runs_away() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 3)) + m for m in (0.0, 1e7, -1e7, 1e7)] * 10)
    found = RowSums(3).update(X).covariance()
    np.testing.assert_allclose(found, np.cov(X.T, ddof=0), rtol=1e-12)


def test_single_precision_is_summed_in_double() -> None:
    X = (np.random.default_rng(0).normal(size=(50_000, 3)) + 100).astype(np.float32)
    found = RowSums(3).update(X)
    assert found.scatter.dtype == torch.float64
    np.testing.assert_allclose(found.covariance(), np.cov(X.T.astype(float), ddof=0), atol=1e-5)


def test_merged_is_all_and_leaves_the_other_alone() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    a, b = RowSums(2).update(X[:10]), RowSums(2).update(X[10:])
    before = b.scatter.clone()
    np.testing.assert_allclose(a.merge(b).covariance(1), np.cov(X.T), rtol=1e-12)
    torch.testing.assert_close(b.scatter, before, rtol=0, atol=0)
    np.testing.assert_allclose(a.correlation(), np.corrcoef(X.T))


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"rows of 2 columns are summed here, got shape \(3, 1\)"):
        RowSums(2).update(np.ones((3, 1)))
    with pytest.raises(ValueError, match="needs rows of more weight, got 0"):
        RowSums(2).covariance()


@pytest.mark.parametrize("d", [7, 23, 40])
def test_products_in_registers_are_those_of_blas(d: int) -> None:
    rng = np.random.default_rng(d)
    n = 2**18 // d + 77
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) * 1e5
    X[:, 0] = 0.1  # a column that does not vary
    X[n // 2 :, 1] += 1e9  # a mean that runs away
    w = rng.integers(0, 3, n)
    for weight in (None, w):
        found = RowSums(d).update(X, weight)
        expected = np.cov(X.T, ddof=0, fweights=weight)
        np.testing.assert_allclose(found.mean, np.average(X, 0, weight), rtol=1e-12)
        scale = np.sqrt(np.outer(*[np.maximum(expected.diagonal(), 1e-4)] * 2))
        assert (np.abs(found.covariance().numpy() - expected) < 1e-9 * scale).all()
    whole, parts = RowSums(d).update(X), RowSums(d).update(X[: n // 3]).update(X[n // 3 :])
    apart = (whole.covariance() - parts.covariance()).abs().numpy()
    assert (apart < 1e-9 * scale).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_sums_see_what_is_not_finite(bad: float) -> None:
    from groundstate import PCA

    X = np.random.default_rng(0).normal(size=(40_000, 8))
    X[31_000, 3] = bad
    with pytest.raises(ValueError, match="Input X contains NaN or infinity"):
        PCA(2).fit(X)
