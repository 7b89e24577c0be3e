"""Structure learning: trees, search, tests of independence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from groundstate import DiscreteBayesianNetwork
from groundstate.learn.structure import (
    BDeu,
    DiscreteBIC,
    GaussianBIC,
    chow_liu,
    hill_climb,
    mutual_information,
    pc,
)
from groundstate.learn.structure.pc import g_test

TREE = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]


def tree_rows(n: int, seed: int = 0) -> np.ndarray:
    noisy = [[0.85, 0.15], [0.2, 0.8]]
    tables = {i: [0.5, 0.5] if i == 0 else noisy for i in range(6)}
    net = DiscreteBayesianNetwork.from_tables(TREE, tables)
    return net.sample(n, random_state=seed).astype(int)


def skeleton(parents: list[list[int]]) -> set[tuple[int, int]]:
    return {(min(i, p), max(i, p)) for i, above in enumerate(parents) for p in above}


@pytest.mark.parametrize("seed", range(3))
def test_trees_are_recovered(seed: int) -> None:
    x = tree_rows(5000, seed)
    truth = {tuple(sorted(e)) for e in TREE}
    assert skeleton(chow_liu(mutual_information(x, [2] * 6))) == truth
    score = DiscreteBIC(x, [2] * 6)
    found = hill_climb(score)
    assert truth <= skeleton(found) and len(skeleton(found)) <= len(truth) + 1
    assert score.total_score(found) >= score.total_score([[], [0], [0], [1], [1], [2]]) - 1e-9
    assert set(pc(6, g_test(x, [2] * 6), alpha=0.001).skeleton) == truth
    net = DiscreteBayesianNetwork().fit(x)
    assert {tuple(sorted(e)) for e in net.edges_} == truth


def test_the_chow_liu_tree_has_the_highest_likelihood() -> None:
    x = tree_rows(400)
    info = mutual_information(x, [2] * 6)
    best = sum(info[p, i] for i, above in enumerate(chow_liu(info)) for p in above)
    rng = np.random.default_rng(0)
    for _ in range(200):
        order = rng.permutation(6)
        total = sum(info[order[k], order[rng.integers(0, k)]] for k in range(1, 6))
        assert total <= best + 1e-12


@pytest.mark.parametrize("make", [DiscreteBIC, BDeu])
def test_scores_are_sums_over_families(make: type) -> None:
    x = tree_rows(300)
    parents = [[], [0], [0], [1], [1, 0], [2]]
    whole = make(x, [2] * 6).total_score(parents)
    assert whole == pytest.approx(sum(make(x, [2] * 6).family(i, p) for i, p in enumerate(parents)))
    w = np.random.default_rng(0).integers(0, 3, 300)
    weighted = make(x, [2] * 6, w.astype(float)).total_score(parents)
    assert weighted == pytest.approx(make(np.repeat(x, w, axis=0), [2] * 6).total_score(parents))
    # graphs of the same independences have the same score
    assert make(x, [2] * 6).total_score([[1], [], [], [], [], []]) == pytest.approx(
        make(x, [2] * 6).total_score([[], [0], [], [], [], []])
    )


def test_bic_is_the_likelihood_of_the_fitted_network() -> None:
    x = tree_rows(300)
    frame = pd.DataFrame(x.astype(float), columns=[f"c{i}" for i in range(6)])
    net = DiscreteBayesianNetwork([(f"c{a}", f"c{b}") for a, b in TREE]).fit(frame)
    parents = [[], [0], [0], [1], [1], [2]]
    bic = DiscreteBIC(x, [2] * 6).total_score(parents)
    assert bic == pytest.approx(net.score(frame) * 300 - 0.5 * np.log(300) * 11)


def test_colliders_are_seen() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 3000))
    c = (a | b) ^ (rng.random(3000) < 0.05)
    d = c ^ (rng.random(3000) < 0.1)
    x = np.column_stack([a, b, c, d])
    found = pc(4, g_test(x, [2] * 4), alpha=0.01)
    assert found.directed == {(0, 2), (1, 2), (2, 3)} and not found.undirected
    assert found.dag() == [[], [], [0, 1], [2]]
    assert hill_climb(DiscreteBIC(x, [2] * 4)) == [[], [], [0, 1], [2]]
    assert hill_climb(DiscreteBIC(x, [2] * 4), tabu=0, max_parents=1) != [[], [], [0, 1], [2]]
    assert pc(4, g_test(x, [2] * 4, statistic="chi2"), alpha=0.01).directed == found.directed


def test_gaussian_search() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1000))
    X = np.column_stack([a, b, a + b + 0.5 * rng.normal(size=1000)])
    score = GaussianBIC(np.cov(X.T, bias=True), 1000)
    assert hill_climb(score) == [[], [], [0, 1]]
