"""Boosted trees: brute force as the oracle of one cut, and growth on a device as on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from groundstate.energy.trees.boosted import BoostedClassEnergy, BoostedEnergy
from groundstate.learn import Naive, SoftMin, fit
from groundstate.learn.solvers.boosting.histogram.device import DeviceGrower
from groundstate.learn.solvers.boosting.histogram.device_fill import fill
from groundstate.learn.solvers.boosting.histogram.device_rows import (
    device_bins,
    device_codes,
    partition,
)
from groundstate.learn.solvers.boosting.histogram.grower import Grower, Limits
from groundstate.learn.solvers.boosting.newton import HistogramBoosting, Stopping
from groundstate.learn.solvers.trees.bins_numba import Bins, column_edges

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 6))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X[:, 0]) + np.sin(3 * np.nan_to_num(X[:, 1])) + 0.3 * RNG.normal(size=900)
COUNTS = RNG.integers(0, 4, 900).astype(float)
SHARES = RNG.random(900)


def best_by_force(g: np.ndarray, h: np.ndarray, limits: Limits) -> tuple[float, int, float, bool]:
    """The largest gain over columns, edges and both sides for NaN, straight from the formula."""
    whole = 0.5 * g.sum() ** 2 / (h.sum() + limits.l2)
    best = (-np.inf, -1, 0.0, False)
    for j in range(X.shape[1]):
        gap = np.isnan(X[:, j])
        for t in [*column_edges(X[:, j], None, 255), np.inf]:
            for nan_left in (False, True):
                left = np.where(gap, nan_left, X[:, j] <= t)
                sides = (left, ~left)
                if any(s.sum() < limits.min_weight for s in sides):
                    continue
                parts = [0.5 * g[s].sum() ** 2 / (h[s].sum() + limits.l2) for s in sides]
                gain = sum(parts) - whole
                if gain > best[0] + 1e-9:
                    best = (gain, j, t, nan_left)
    return best


@pytest.mark.parametrize("l2", [0.0, 5.0])
@pytest.mark.parametrize("rows", [900, 200])  # with histograms, and straight from the rows
def test_cut_is_the_best_of_all(rows: int, l2: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.X", X[:rows])
    g, h = RNG.normal(size=rows) + X[:rows, 2] * 0 - Y[:rows], RNG.uniform(0.5, 1.5, rows)
    g = np.nan_to_num(g)
    limits = Limits(2, min_weight=10.0, l2=l2)
    gain, j, t, nan_left = best_by_force(g, h, limits)
    grower = Grower(X[:rows], Bins.of(X[:rows], None, 255), None, limits)
    tree, _ = grower.grow(torch.from_numpy(g), torch.from_numpy(h), 0)
    assert (tree.feature[0], tree.threshold[0]) == (j, t) and tree.nan_left[0] == nan_left
    assert tree.impurity[0] == pytest.approx(gain, rel=1e-9)


LIMITS = {
    "plain": Limits(),
    "few columns": Limits(columns=0.5),
    "monotone": Limits(rising=(1, -1, 0, 0, 0, 0)),
    "interaction": Limits(together=(frozenset({0, 1}), frozenset({2, 3, 4, 5}))),
    "deep": Limits(max_leaves=None, max_depth=5, l2=3.0),
}


def boosted(backend: Any, weight: Any = None, **settings: Any) -> BoostedEnergy:
    energy = BoostedEnergy(6).double()
    data = {"x": torch.from_numpy(X), "y": torch.from_numpy(Y)[:, None]}
    solver = HistogramBoosting(5, backend=backend, **settings)
    w = None if weight is None else torch.from_numpy(weight)
    fit(energy, data, Naive(), solver, sample_weight=w, random_state=0)
    return energy


@pytest.mark.parametrize("weight", [None, COUNTS, SHARES], ids=["none", "counts", "shares"])
@pytest.mark.parametrize("name", LIMITS)
def test_device_grows_the_same_trees(name: str, weight: np.ndarray | None) -> None:
    one, two = (boosted(b, weight, limits=LIMITS[name]) for b in ("numba", "torch"))
    for t in range(5):
        a, b = one.nodes.tree(t), two.nodes.tree(t)
        for part in ("feature", "threshold", "left", "right", "nan_left", "rows"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
        np.testing.assert_allclose(a.value, b.value, rtol=1e-8, atol=1e-12)


def test_device_with_one_side_sampling_and_stopping() -> None:
    settings = {"goss": (0.3, 0.2), "stopping": Stopping(0.2, 3)}
    one, two = (boosted(b, **settings) for b in ("numba", "torch"))
    x = torch.from_numpy(X)
    torch.testing.assert_close(one.raw(x), two.raw(x))


def test_device_classes_and_renewed_leaves() -> None:
    x, y = torch.from_numpy(X), torch.from_numpy(np.digitize(Y, [-0.5, 0.5]))
    found = []
    for backend in ("numba", "torch"):
        energy = BoostedClassEnergy(6, 3).double()
        fit(energy, {"x": x, "y": y}, SoftMin(), HistogramBoosting(4, backend=backend))  # type: ignore[arg-type]
        found.append(energy.raw(x))
    torch.testing.assert_close(*found)
    values = []
    for backend in ("numba", "torch"):
        median = BoostedEnergy(6, "absolute_error").double()
        data = {"x": x, "y": torch.from_numpy(Y)[:, None]}
        fit(median, data, Naive(), HistogramBoosting(4, backend=backend))  # type: ignore[arg-type]
        values.append(median.raw(x))
    torch.testing.assert_close(*values)


def test_device_bins_codes_and_partition() -> None:
    x = torch.from_numpy(X)
    for weight in (None, COUNTS):
        ours = device_bins(x, None if weight is None else torch.from_numpy(weight), 32)
        theirs = Bins.of(X, weight, 32)
        for a, b in zip(ours.edges, theirs.edges):
            np.testing.assert_array_equal(a, b)
    codes = device_codes(x, ours)
    plain = np.empty((6, 900), np.uint8)
    ours.encode(X, plain)
    np.testing.assert_array_equal(codes.permute(0, 2, 1).reshape(8, 900)[:6].numpy(), plain)
    rows = torch.arange(900, dtype=torch.int32)
    middle = partition(codes, rows, [(0, 500), (600, 900)], [(0, 10, True), (5, 3, False)])
    left = (plain[0, :500] <= 10) | (plain[0, :500] == 255)
    assert middle[0] == left.sum() and set(rows[:500].tolist()) == set(range(500))
    np.testing.assert_array_equal(rows[: middle[0]].numpy(), np.flatnonzero(left))
    np.testing.assert_array_equal(
        rows[600 : middle[1]].numpy(), 600 + np.flatnonzero(plain[5, 600:] <= 3)
    )
    pairs = torch.from_numpy(RNG.integers(-9, 9, (900, 2)))
    hist = fill(codes, rows, pairs, [(0, 500), (600, 600)])
    by_hand = np.bincount(plain[2, :500], pairs[:500, 0].numpy(), 256)
    np.testing.assert_array_equal(hist[0, 2, :, 0].numpy(), by_hand)
    assert not hist[1].any()


def test_device_splits_ahead_without_changing_the_order() -> None:
    """Leaves are numbered in the order in which best-first growth splits them."""
    x = torch.from_numpy(X)
    grower = DeviceGrower(x, device_bins(x, None, 255), None, Limits(12))
    tree, spans = grower.grow(torch.from_numpy(-Y), torch.ones(900).double(), 0)
    assert (tree.feature < 0).sum() == 12 and len(spans) == 12
    inner = np.flatnonzero(tree.feature >= 0)
    first_child = tree.left[inner]
    order = inner[np.argsort(first_child)]
    for k, v in enumerate(order[1:], 1):  # no waiting leaf had a larger gain
        waiting = [u for u in order[k:] if u == 0 or u < tree.left[order[k]]]
        assert tree.impurity[v] >= max(tree.impurity[u] for u in waiting) * (1 - 1e-9)
