"""Kernel densities: scikit-learn's numbers, and what it does not answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate
from sklearn.neighbors import KernelDensity as Peer

from groundstate import KernelDensity, load
from groundstate.errors import Unsupported

KERNELS = ("gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine")
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Q = rng.normal(size=(40, 3))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [0.8, "scott", "silverman"])
def test_log_densities_are_scikit_learns(kernel: str, bandwidth: Any) -> None:
    ours = KernelDensity(bandwidth, kernel=kernel).fit(X)
    theirs = Peer(bandwidth=bandwidth, kernel=kernel).fit(X)
    found, known = ours.score_samples(Q), theirs.score_samples(Q)
    inside = known > -30  # theirs leaves rounding errors where a kernel is zero
    np.testing.assert_allclose(found[inside], known[inside], rtol=1e-9, atol=1e-7)
    assert (found[~inside] < -30).all()
    np.testing.assert_allclose(ours.score(X), theirs.score(X), rtol=1e-7)
    assert ours.bandwidth_ == pytest.approx(theirs.bandwidth_)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_other_metrics_are_scikit_learns_and_not_normalised(metric: str) -> None:
    ours = KernelDensity(0.8, metric=metric).fit(X)
    theirs = Peer(bandwidth=0.8, metric=metric).fit(X)
    np.testing.assert_allclose(ours.score_samples(Q), theirs.score_samples(Q), rtol=1e-9)
    assert ours.log_prob_kind_ == "unnormalised"
    with pytest.raises(
        Unsupported, match="draws around rows are not defined for metric='canberra'"
    ):
        KernelDensity(0.8, metric="canberra").fit(X).sample(2)


@pytest.mark.parametrize("kernel", ["gaussian", "tophat", "epanechnikov"])
@pytest.mark.parametrize(
    "metric", [{"metric": "manhattan"}, {"metric": "chebyshev"}, {"metric_params": {"p": 3}}]
)
def test_draws_of_other_norms_have_their_density(kernel: str, metric: dict[str, Any]) -> None:
    model = KernelDensity(1.0, kernel=kernel, **({"metric": "minkowski"} | metric))
    drawn = np.asarray(model.fit([[0.0, 0.0]]).sample(40_000, random_state=0))
    side = np.linspace(-7, 7, 701) if kernel == "gaussian" else np.linspace(-1, 1, 501)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    weight = np.exp(model.score_samples(grid))
    for moment in (lambda x: x[:, 0] ** 2, lambda x: (x[:, 0] * x[:, 1]) ** 2):
        values = moment(drawn)
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - np.average(moment(grid), weights=weight)) < 4.5 * error + 2e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_density_of_a_plane_integrates_to_one(kernel: str) -> None:
    """Also that of "cosine", whose constant in scikit-learn 1.x is wrong in even dimensions."""
    model = KernelDensity(1.0, kernel=kernel).fit([[0.0, 0.0]])
    ring = integrate.quad(
        lambda r: 2 * np.pi * r * np.exp(model.score_samples([[r, 0.0]])[0]), 0, 40,
        points=[1.0], limit=200,
    )[0]  # fmt: skip
    assert ring == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_draws_have_the_spread_of_the_kernel(kernel: str) -> None:
    model = KernelDensity(1.0, kernel=kernel).fit([[0.0]])
    drawn = np.asarray(model.sample(20_000, random_state=0))[:, 0]
    grid = np.linspace(-30, 30, 60_001)
    p = np.exp(model.score_samples(grid[:, None]))
    variance = float((grid**2 * p).sum() / p.sum())
    assert drawn.var() == pytest.approx(variance, rel=0.05)
    assert np.isfinite(model.score_samples(drawn[:500, None])).all()


def test_a_weight_of_two_is_the_row_twice() -> None:
    w = rng.integers(0, 3, len(X))
    heavy = KernelDensity("likelihood").fit(X, sample_weight=w)
    twice = KernelDensity("likelihood").fit(rng.permutation(np.repeat(X, w, axis=0)))
    assert heavy.bandwidth_ == twice.bandwidth_
    np.testing.assert_array_equal(heavy.score_samples(Q), twice.score_samples(Q))
    np.testing.assert_array_equal(heavy.sample(5, random_state=0), twice.sample(5, random_state=0))


def test_the_bandwidth_of_highest_likelihood_of_rows_left_out() -> None:
    rows = rng.normal(size=(150, 1))
    model = KernelDensity("likelihood").fit(rows)

    def left_out(h: float) -> float:
        k = np.exp(-0.5 * ((rows - rows.T) / h) ** 2) / (h * np.sqrt(2 * np.pi))
        np.fill_diagonal(k, 0.0)
        return float(np.log(k.sum(1) / 149).mean())

    best = max(np.geomspace(0.05, 2.0, 400), key=left_out)
    assert model.bandwidth_ == pytest.approx(best, rel=0.02)
    copies = KernelDensity("likelihood").fit(np.repeat(rows, 3, axis=0))
    assert copies.bandwidth_ == pytest.approx(model.bandwidth_, rel=1e-3)  # left out together


def test_columns_given_others_are_those_of_a_mixture_of_gaussians() -> None:
    rows = rng.normal(size=(30, 2))
    model = KernelDensity(0.5).fit(rows)
    w = np.exp(-0.5 * ((rows[:, 1] - 0.3) / 0.5) ** 2)
    mean = w @ rows[:, 0] / w.sum()
    gap = np.array([[np.nan, 0.3]])
    assert model.impute(gap)[0, 0] == pytest.approx(mean, rel=1e-6)
    drawn = model.impute(np.repeat(gap, 4000, 0), "sample", random_state=0)[:, 0]
    variance = w @ (rows[:, 0] - mean) ** 2 / w.sum() + 0.25
    assert drawn.mean() == pytest.approx(mean, abs=0.06)
    assert drawn.var() == pytest.approx(variance, rel=0.08)
    grid = np.linspace(-4, 4, 4001)
    along = model.score_samples(np.column_stack([grid, np.full(4001, 0.3)]))
    assert model.impute(gap, "minimise")[0, 0] == pytest.approx(grid[along.argmax()], abs=0.01)
    log_known = np.log(np.exp(along).sum() * (grid[1] - grid[0]))
    assert model.score_samples(gap)[0] == pytest.approx(log_known, abs=1e-3)


def test_other_kernels_say_that_columns_do_not_separate() -> None:
    model = KernelDensity(0.5, kernel="tophat").fit(X)
    with pytest.raises(Unsupported, match="kernel='gaussian'"):
        model.impute([[np.nan, 0.0, 0.0]])


def test_tables_with_categories_sum_to_one() -> None:
    table = pd.DataFrame(
        {"kind": ["a"] * 30 + ["b"] * 10, "size": np.r_[np.zeros(30), np.ones(10)]}
    )
    model = KernelDensity(0.4).fit(table)
    grid = np.linspace(-4, 5, 1801)
    total = 0.0
    for kind in ("a", "b"):
        rows = pd.DataFrame({"kind": kind, "size": grid})
        total += np.exp(model.score_samples(rows)).sum() * (grid[1] - grid[0])
    assert total == pytest.approx(1.0, abs=1e-6)
    assert model.impute(pd.DataFrame({"kind": [None], "size": [1.1]}))["kind"][0] == "b"


def test_classes_have_densities_of_their_own(tmp_path: Any) -> None:
    y = np.where(X[:, 0] > 0, "right", "left")
    model = KernelDensity(0.5).fit(X, y)
    alone = Peer(bandwidth=0.5).fit(X[y == "left"])
    np.testing.assert_allclose(
        model.score_samples(Q, ["left"] * len(Q)), alone.score_samples(Q), rtol=1e-7
    )
    assert (model.infer({"x": [[2.0, 0.0, 0.0]]}, "y") == "right").all()
    back = load(model.save(tmp_path / "kde.gs"))
    np.testing.assert_array_equal(back.score_samples(Q), model.score_samples(Q))


def test_far_from_zero_nothing_is_lost() -> None:
    far = KernelDensity(0.5).fit(X + 1e6).score_samples(Q + 1e6)
    np.testing.assert_allclose(far, KernelDensity(0.5).fit(X).score_samples(Q), rtol=1e-6)
