"""Bayesian networks: the textbook numbers, listing as the oracle, EM, interventions, names."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import groundstate
from groundstate import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from groundstate.errors import DataError
from groundstate.models.generative.graphical.discrete_bayesian_network import noisy_or

SPRINKLER = [("C", "S"), ("C", "R"), ("S", "W"), ("R", "W")]


def sprinkler() -> DiscreteBayesianNetwork:
    wet = [[[1.0, 0.0], [0.1, 0.9]], [[0.1, 0.9], [0.01, 0.99]]]
    return DiscreteBayesianNetwork.from_tables(
        SPRINKLER,
        {"C": [0.5, 0.5], "S": [[0.5, 0.5], [0.9, 0.1]], "R": [[0.8, 0.2], [0.2, 0.8]], "W": wet},
    )


def alarm(p: float, table: Any) -> DiscreteBayesianNetwork:
    prior = [1 - p, p]
    return DiscreteBayesianNetwork.from_tables(
        [("x", "z"), ("y", "z")], {"x": prior, "y": prior, "z": table}
    )


OR = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]


def test_sprinkler() -> None:
    net = sprinkler()
    assert net.query("W")[1] == pytest.approx(0.6471)
    assert net.query("S", {"W": 1})[1] == pytest.approx(0.429764, abs=5e-7)
    assert net.query("R", {"W": 1})[1] == pytest.approx(0.707928, abs=5e-7)
    assert net.query("S", {"W": 1, "R": 1})[1] == pytest.approx(0.194499, abs=5e-7)
    best = net.map_query(evidence={"W": 1})
    assert best == {"C": 1, "S": 0, "R": 1}
    row = pd.DataFrame([{**best, "W": 1}])[["C", "S", "R", "W"]].astype(float)
    assert np.exp(net.score_samples(row))[0] == pytest.approx(0.324)
    assert net.map_query("S", {"W": 1}) == {"S": 0}
    assert net.log_evidence({"W": 1}) == pytest.approx(np.log(0.6471))


def test_alarm_and_explaining_away() -> None:
    net = alarm(0.01, OR)
    assert net.query("z")[1] == pytest.approx(0.0199)
    assert net.query("x", {"z": 1})[1] == pytest.approx(0.502513, abs=5e-7)
    assert net.query("x", {"z": 1, "y": 1})[1] == pytest.approx(0.01)
    assert net.query("x")[1] == pytest.approx(0.01)


def test_noisy_or() -> None:
    net = alarm(0.1, noisy_or([0.9, 0.8]))
    assert net.query("z")[1] == pytest.approx(0.1628)
    for z, value in ((0, 0.0), (1, -0.220044)):
        p = net.query(["x", "y"], {"z": z})
        cov = p[1, 1] - p[1].sum() * p[:, 1].sum()
        assert cov == pytest.approx(value, abs=5e-7)
    with pytest.raises(ValueError, match="probabilities"):
        noisy_or([1.2])


def test_seeing_is_not_doing() -> None:
    fork = DiscreteBayesianNetwork.from_tables(
        [("z", "x"), ("z", "y")],
        {"z": [0.5, 0.5], "x": [[0.9, 0.1], [0.1, 0.9]], "y": [[0.9, 0.1], [0.1, 0.9]]},
    )
    np.testing.assert_allclose(fork.query(["x", "y"]), [[0.41, 0.09], [0.09, 0.41]])
    assert fork.query("y", {"x": 1})[1] == pytest.approx(0.82)
    assert fork.do(x=1).query("y")[1] == pytest.approx(0.5)
    net = sprinkler()
    assert net.query("R", {"S": 1})[1] == pytest.approx(0.3)
    assert net.do(S=1).query("R")[1] == pytest.approx(0.5)
    assert net.do({"S": 1}).edges_ == [("C", "R"), ("S", "W"), ("R", "W")]
    assert net.query("R", {"S": 1})[1] == pytest.approx(0.3)  # the network itself is as it was


def test_the_graph_by_names() -> None:
    net = sprinkler()
    assert net.is_d_separated("S", "R", "C") and not net.is_d_separated("S", "R", ["C", "W"])
    assert net.markov_blanket("S") == ["C", "R", "W"]
    assert ("S", "R") in net.moral_graph()
    collider = alarm(0.1, OR)
    assert collider.is_d_separated("x", "y") and not collider.is_d_separated("x", "y", "z")
    joint = collider.query(["x", "y"])
    np.testing.assert_allclose(joint, np.outer(joint.sum(1), joint.sum(0)), atol=1e-12)


def random_network(seed: int) -> DiscreteBayesianNetwork:
    rng = np.random.default_rng(seed)
    names, levels = list("abcdef"), rng.integers(2, 4, 6)
    edges = [(names[i], names[j]) for j in range(6) for i in range(j) if rng.random() < 0.4]
    tables = {}
    for j, name in enumerate(names):
        above = [names.index(a) for a, b in edges if b == name]
        shape = [levels[i] for i in above]
        tables[name] = (
            rng.dirichlet(np.ones(levels[j]), size=shape)
            if shape
            else rng.dirichlet(np.ones(levels[j]))
        )
    return DiscreteBayesianNetwork.from_tables(edges, tables)


@pytest.mark.parametrize("seed", range(4))
def test_queries_are_listing(seed: int) -> None:
    net = random_network(seed)
    sizes = [len(s) for s in net.states_.values()]
    rows = pd.DataFrame(list(itertools.product(*map(range, sizes))), columns=list("abcdef"))
    p = np.exp(net.score_samples(rows.astype(float)))
    assert p.sum() == pytest.approx(1)
    for asked, given in (("a", {}), ("f", {"a": 1}), ("c", {"f": 0, "b": 1}), ("b", {"f": 1})):
        fits = np.logical_and.reduce(
            [np.ones(len(rows), bool), *(rows[k].to_numpy() == v for k, v in given.items())]
        )
        truth = np.bincount(rows[asked][fits], p[fits]) / p[fits].sum()
        np.testing.assert_allclose(net.query(asked, given), truth, atol=1e-12)
    best = rows.loc[np.where(rows["d"] == 0, p, 0).argmax()]
    assert net.map_query(evidence={"d": 0}) == {k: int(best[k]) for k in "abcef"}


def test_draws_and_evidence() -> None:
    net = sprinkler()
    X = net.sample(20_000, random_state=0)
    assert X[:, 3].mean() == pytest.approx(0.6471, abs=4 * 0.0034)
    given = net.sample(5000, evidence={"W": 1}, random_state=0)
    assert (given[:, 3] == 1).all()
    assert given[:, 1].mean() == pytest.approx(0.429764, abs=4 * 0.007)
    rows, weight = net.likelihood_weighting(20_000, {"W": 1}, random_state=0)
    assert (weight * rows[:, 1]).sum() / weight.sum() == pytest.approx(0.429764, abs=0.02)
    np.testing.assert_array_equal(net.sample(3, random_state=1), net.sample(3, random_state=1))


def test_counts_priors_and_weights() -> None:
    X = pd.DataFrame(sprinkler().sample(500, random_state=0), columns=list("CSRW"))
    net = DiscreteBayesianNetwork(SPRINKLER).fit(X)
    one = X[(X["S"] == 1) & (X["R"] == 0)]
    assert net.tables_["W"][1, 0, 1] == pytest.approx((one["W"] == 1).mean())
    w = np.arange(500) % 3
    twice = DiscreteBayesianNetwork(SPRINKLER).fit(X.loc[np.repeat(np.arange(500), w)])
    weighted = DiscreteBayesianNetwork(SPRINKLER).fit(X, sample_weight=w)
    for name, table in weighted.tables_.items():
        np.testing.assert_allclose(table, twice.tables_[name], atol=1e-12)
    smooth = DiscreteBayesianNetwork(SPRINKLER, equivalent_sample_size=8).fit(X)
    n = np.array([((X["C"] == c) & (X["S"] == 1)).sum() for c in (0, 1)])
    total = np.array([(X["C"] == c).sum() for c in (0, 1)])
    np.testing.assert_allclose(smooth.tables_["S"][:, 1], (n + 2) / (total + 4))


def test_em_rises_and_finds_the_tables() -> None:
    X = sprinkler().sample(6000, random_state=0)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    frame = pd.DataFrame(gaps, columns=list("CSRW"))
    net = DiscreteBayesianNetwork(SPRINKLER).fit(frame)
    values = net.history_.extra["log_likelihood"]
    assert (np.diff(values) > -1e-10).all() and net.n_iter_ > 2
    for name, table in sprinkler().tables_.items():
        np.testing.assert_allclose(net.tables_[name], table, atol=0.06)
    assert net.score(frame) == pytest.approx(values[-1], abs=1e-6)
    filled = net.impute(frame[:50])
    assert (
        not filled.isna().any().any()
        if isinstance(filled, pd.DataFrame)
        else np.isfinite(filled).all()
    )


def test_bad_networks_are_refused() -> None:
    make = DiscreteBayesianNetwork.from_tables
    with pytest.raises(ValueError, match="circle, a → b → a"):
        make([("a", "b"), ("b", "a")], {"a": [[0.5, 0.5]] * 2, "b": [[0.5, 0.5]] * 2})
    with pytest.raises(ValueError, match="no table for 'b'"):
        make([("a", "b")], {"a": [0.5, 0.5]})
    with pytest.raises(ValueError, match="'a': .*sums to 0.9"):
        make([], {"a": [0.5, 0.4]})
    with pytest.raises(ValueError, match="one axis for each of its parents"):
        make([("a", "b")], {"a": [0.5, 0.5], "b": [0.5, 0.5]})
    net = sprinkler()
    with pytest.raises(DataError, match="no state 7"):
        net.query("S", {"W": 7})
    with pytest.raises(ValueError, match="no column 'Q'"):
        net.query("Q")
    with pytest.raises(DataError, match="probability 0"):
        net.query("C", {"S": 0, "R": 0, "W": 1})
    with pytest.raises(DataError, match="not seen in fit"):
        DiscreteBayesianNetwork().fit([[0.0], [1.0]]).score_samples([[2.0]])


@pytest.mark.parametrize("n, n_bins", [(3000, 16), (60, 8), (40, 2)])
def test_bins_make_a_density_over_all_numbers(n: int, n_bins: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 1))
    net = DiscreteBayesianNetwork(n_bins=n_bins).fit(X)
    grid = np.linspace(-40, 40, 800_001)[:, None]
    p = np.exp(net.score_samples(grid))
    assert np.trapezoid(p, grid[:, 0]) == pytest.approx(1, abs=1e-4)
    drawn = net.sample(40_000, random_state=0)
    beyond = (drawn < X.min()) | (drawn > X.max())
    outside = (grid < X.min()) | (grid > X.max())
    share = np.trapezoid(p * outside[:, 0], grid[:, 0])
    assert beyond.mean() == pytest.approx(share, abs=4 * np.sqrt(share / 40_000))
    mean = np.trapezoid(p * grid[:, 0], grid[:, 0])
    assert net.impute([[np.nan]], "mean")[0, 0] == pytest.approx(mean, abs=1e-3)
    assert drawn.mean() == pytest.approx(mean, abs=0.03)
    entropy = -np.trapezoid(p * np.log(p.clip(1e-300)), grid[:, 0])
    assert -net.score_samples(drawn).mean() == pytest.approx(entropy, abs=0.03)
    there = net.score_samples(X).mean()
    assert there > -1.5 and net.score_samples([[9.0]]) < there - 5
    assert net.energy([[9.0]]) > net.energy(X).max()  # what no training row came near is unlike all


def test_classes_have_tables_of_their_own() -> None:
    X = sprinkler().sample(2000, random_state=0)
    y = np.where(X[:, 0] == 1, "cloudy", "clear")
    net = DiscreteBayesianNetwork().fit(X[:, 1:], y)
    whole = np.logaddexp.reduce(
        [
            net.score_samples(X[:, 1:], np.repeat(c, len(X))) + np.log((y == c).mean())
            for c in np.unique(y)
        ]
    )
    np.testing.assert_allclose(net.score_samples(X[:, 1:]), whole, atol=1e-10)
    assert net.sample(400, y="cloudy", random_state=0)[:, 1].mean() == pytest.approx(0.8, abs=0.1)
    with pytest.raises(ValueError, match="fitted with classes"):
        net.query(0)


GAUSSIAN = (np.array([1.0, 1.0, -1.0]), np.array([[2.0, 2, 0], [2, 3, 0], [0, 0, 1]]))


def gaussian() -> LinearGaussianBayesianNetwork:
    """The network x1 → x2 of this mean and covariance."""
    net = LinearGaussianBayesianNetwork([(0, 1)]).fit(np.random.default_rng(0).normal(size=(9, 3)))
    energy: Any = net.energy_
    energy.set([1.0, 0.0, -1.0], {(0, 1): 1.0}, [2.0, 1.0, 1.0])
    return net


def test_gaussian_network_reproduces_the_covariance() -> None:
    net = gaussian()
    np.testing.assert_allclose(net.mean_, GAUSSIAN[0], atol=1e-12)
    np.testing.assert_allclose(net.covariance_, GAUSSIAN[1], atol=1e-12)
    gap = np.array([[np.nan, 2.0, 0.3]])
    assert net.impute(gap)[0, 0] == pytest.approx(1.666667, abs=5e-7)
    mean, cov = net.conditional({1: 2.0})
    assert mean[0] == pytest.approx(1.666667, abs=5e-7)
    assert cov[0, 0] == pytest.approx(0.666667, abs=5e-7)
    drawn = net.impute(np.repeat(gap, 4000, 0), "sample", random_state=0)
    assert drawn[:, 0].mean() == pytest.approx(1.666667, abs=0.06)
    assert drawn[:, 0].var() == pytest.approx(0.666667, rel=0.1)
    assert (drawn[:, 1:] == gap[0, 1:]).all()


def test_other_engines_on_this_gaussian() -> None:
    X = np.random.default_rng(0).multivariate_normal(*GAUSSIAN, 4000)
    gap = np.array([[np.nan, 2.0, -1.0]])
    for model in (
        LinearGaussianBayesianNetwork(),
        DiscreteBayesianNetwork(n_bins=24),
        groundstate.SumProductNetwork("random", max_iter=40, random_state=0),
    ):
        model.fit(X)
        assert model.impute(gap)[0, 0] == pytest.approx(1.666667, rel=0.1)
        drawn = model.impute(np.repeat(gap, 3000, 0), "sample", random_state=0)
        wide = 0.4 if isinstance(model, DiscreteBayesianNetwork) else 0.15  # bins have a width
        assert drawn[:, 0].var() == pytest.approx(0.666667, rel=wide)


def test_gaussian_regressions_and_em() -> None:
    X = np.random.default_rng(1).multivariate_normal(*GAUSSIAN, 3000)
    net = LinearGaussianBayesianNetwork([(0, 1)]).fit(X)
    slope, intercept = np.polyfit(X[:, 0], X[:, 1], 1)
    assert net.coef_[1, 0] == pytest.approx(slope) and net.intercept_[1] == pytest.approx(intercept)
    from scipy.stats import multivariate_normal

    truth = multivariate_normal(net.mean_, net.covariance_).logpdf(X)
    np.testing.assert_allclose(net.score_samples(X), truth, atol=1e-9)
    scaled = LinearGaussianBayesianNetwork([(0, 1)], scale="standard").fit(X)
    np.testing.assert_allclose(scaled.covariance_, net.covariance_, atol=1e-9)
    np.testing.assert_allclose(scaled.score_samples(X), truth, atol=1e-9)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.25, np.nan, X)
    em = LinearGaussianBayesianNetwork([(0, 1)]).fit(gaps)
    values = em.history_.extra["log_likelihood"]
    assert (np.diff(values) > -1e-10).all()
    np.testing.assert_allclose(em.covariance_, GAUSSIAN[1], atol=0.25)
    assert LinearGaussianBayesianNetwork("hill_climbing").fit(X).edges_ in ([(0, 1)], [(1, 0)])


def test_torch_and_float32_stay() -> None:
    X = torch.from_numpy(sprinkler().sample(200, random_state=0)).float()
    net = DiscreteBayesianNetwork().fit(X)
    scores = net.score_samples(X)
    assert isinstance(scores, torch.Tensor) and scores.dtype == torch.float32


def test_drawing() -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert sprinkler().plot(ax, evidence={"W": 1}) is ax
    assert len(ax.patches) > 4
    gaussian().plot(Figure().subplots())
