"""Markov random fields and sum-product networks against listing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import groundstate
from groundstate import MarkovRandomField, SumProductNetwork
from groundstate.energy import CircuitEnergy, FactorGraphEnergy
from groundstate.infer import kernel_matrix, marginalise, minimise
from groundstate.infer.sampling.gibbs import Gibbs

TWO = [["leaf", 0], ["leaf", 1], ["leaf", 0], ["leaf", 1],
       ["product", [0, 1]], ["product", [2, 3]], ["sum", [4, 5]]]  # fmt: skip


def two() -> CircuitEnergy:
    circuit = CircuitEnergy(TWO, [2, 2]).double()
    circuit.set([[0.3, 0.7]], [[0.8, 0.2], [0.3, 0.7], [0.1, 0.9], [0.6, 0.4]])
    return circuit


def test_the_two_part_circuit() -> None:
    circuit, x = two(), torch.ones(1, 2).double()
    with torch.no_grad():
        assert circuit.log_marginal(x, torch.tensor([[False, True]])).exp().item() == pytest.approx(
            0.69
        )
        assert (-circuit(x=x)).exp().item() == pytest.approx(0.294)
        assert circuit.log_marginal(
            x, torch.ones(1, 2, dtype=torch.bool)
        ).exp().item() == pytest.approx(1)


def test_circuits_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="not smooth"):
        CircuitEnergy([["leaf", 0], ["leaf", 1], ["sum", [0, 1]]], [2, 2])
    with pytest.raises(ValueError, match="not decomposable"):
        CircuitEnergy([["leaf", 0], ["leaf", 0], ["product", [0, 1]]], [2])
    with pytest.raises(ValueError, match="all 2 columns"):
        CircuitEnergy([["leaf", 0]], [2, 2])


@pytest.mark.parametrize("seed", range(3))
def test_marginals_of_a_circuit_are_listing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (200, 4)).astype(float)
    X[:, 1] = (X[:, 0] + (rng.random(200) < 0.3)) % 3
    model = SumProductNetwork("random", max_iter=5, random_state=seed).fit(
        np.array([["abc"[int(v)] for v in row] for row in X], dtype=object)
    )
    circuit = model.energy_
    values = torch.tensor(list(itertools.product(range(3), repeat=4))).double()
    with torch.no_grad():
        p = (-circuit(x=values)).exp()
        assert p.sum().item() == pytest.approx(1)
        free = torch.tensor([[True, False, True, False]])
        x = torch.tensor([[0.0, 2.0, 0.0, 1.0]]).double()
        fits = (values[:, 1] == 2) & (values[:, 3] == 1)
        assert circuit.log_marginal(x, free).exp().item() == pytest.approx(p[fits].sum().item())
        marginals = circuit.conditional(x, free).marginals()
        truth = torch.stack([p[fits & (values[:, 0] == k)].sum() for k in range(3)]) / p[fits].sum()
        np.testing.assert_allclose(marginals[0][0], truth, atol=1e-12)
        drawn = circuit.conditional(x, free).draw(4000, torch.Generator().manual_seed(0))[:, 0, 0]
        share = torch.bincount(drawn.long(), minlength=3) / 4000
        np.testing.assert_allclose(share, truth, atol=0.04)


def test_circuits_learn_mixed_columns_and_gaps() -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 600)
    X = np.column_stack(
        [np.where(z, 2.0, -2.0) + rng.normal(size=600), z * 3 + rng.normal(size=600)]
    )
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    for structure in ("learn", "random"):
        model = SumProductNetwork(structure, random_state=0, max_iter=40).fit(gaps)
        values = model.history_.extra["log_likelihood"]
        assert (np.diff(values) > -1e-9).all()
        single = np.log(
            np.exp(-0.5 * ((X - X.mean(0)) / X.std(0)) ** 2) / X.std(0) / np.sqrt(2 * np.pi)
        )
        assert model.score(X) > single.sum(1).mean() + 0.3
        assert np.isfinite(model.score_samples(gaps)).all()


def ising() -> MarkovRandomField:
    return MarkovRandomField.from_energies([(0, 1), (1, 2)], [0.5, 0.5], [2, 2, 2])


def test_the_ising_chain() -> None:
    field = ising()
    assert field.log_partition() == pytest.approx(2.319671, abs=5e-7)
    assert field.log_partition("belief_propagation") == pytest.approx(2.319671, abs=5e-7)
    assert field.log_partition("mean_field") <= 2.319671
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    assert np.exp(field.score_samples(rows)).sum() == pytest.approx(1)
    exact = field.marginals({0: 1})
    for method in ("belief_propagation", "gibbs"):
        found = field.marginals({0: 1}, method, random_state=0)
        for i in range(3):
            np.testing.assert_allclose(found[i], exact[i], atol=1e-8 if method[0] == "b" else 0.04)
    with pytest.raises(ValueError, match="method must be"):
        field.marginals(method="magic")


def test_colours_leave_the_distribution() -> None:
    energy = FactorGraphEnergy([2, 2, 2], [(0,), (0, 1), (1, 2)]).double()
    energy.theta.data.normal_(generator=torch.Generator().manual_seed(0))
    vars(energy)["_exact"] = False  # so that Gibbs sampling goes by sites
    P = kernel_matrix(Gibbs(), energy)
    values = energy.spaces["x"].enumerate(None, torch.float64)
    with torch.no_grad():
        p = torch.softmax(-energy(x=values), 0)
    assert torch.allclose(P @ p, p, atol=1e-12)
    assert energy.colours == [[0, 2], [1]]


@pytest.mark.parametrize("interaction", ["ising", "potts", "table"])
def test_pseudo_likelihood_finds_the_field(interaction: str) -> None:
    X = ising().sample(4000, random_state=0)
    likelihood = MarkovRandomField(interaction=interaction, learning="likelihood").fit(X)
    pseudo = MarkovRandomField(interaction=interaction).fit(X)
    assert pseudo.score(X) == pytest.approx(likelihood.score(X), abs=1e-3)
    assert likelihood.score(X) >= ising().score(X) - 1e-4
    if interaction == "ising":
        assert pseudo.tables_[0, 1][0, 0] == pytest.approx(-0.5, abs=0.06)
        assert pseudo.tables_[0, 2][0, 0] == pytest.approx(0, abs=0.06)


def test_persistent_chains_find_it_too() -> None:
    X = ising().sample(1000, random_state=0)
    model = MarkovRandomField(
        [(0, 1), (1, 2)], interaction="ising", learning="pcd", learning_rate=0.02, max_iter=8,
        random_state=0,
    ).fit(X)  # fmt: skip
    assert model.tables_[0, 1][0, 0] == pytest.approx(-0.5, abs=0.15)


def test_a_dense_field_goes_on_without_log_z() -> None:
    rng = np.random.default_rng(0)
    d = 30
    X = (rng.random((200, d)) < 0.5).astype(float)
    model = MarkovRandomField(interaction="ising", alpha=1.0, n_sweeps=5, max_iter=30).fit(X)
    assert model.log_prob_kind_ == "unnormalised"
    assert model.sample(4, random_state=0).shape == (4, d)
    gap = X[:2].copy()
    gap[0, 3] = np.nan
    assert np.isfinite(model.impute(gap, "sample", random_state=0)).all()
    with pytest.raises(ValueError, match="NaN"):
        MarkovRandomField().fit(gap)


def test_elimination_answers_the_three_questions() -> None:
    energy = FactorGraphEnergy([2, 3, 2], [(0, 1), (1, 2)]).double()
    energy.theta.data.normal_(generator=torch.Generator().manual_seed(1))
    values = energy.spaces["x"].enumerate(None, torch.float64)
    with torch.no_grad():
        e = energy(x=values)
    assert minimise(energy, "x").energy.item() == pytest.approx(e.min().item())
    assert marginalise(energy, "x").value.item() == pytest.approx(-torch.logsumexp(-e, 0).item())


@pytest.mark.parametrize("name", ["MarkovRandomField", "DiscreteBayesianNetwork"])
def test_float32_rows(name: str) -> None:
    """Places in the tables are whole numbers, which a model in single precision keeps as such."""
    rows = np.random.default_rng(0).integers(0, 2, (30, 3))
    model = getattr(groundstate, name)
    exact = model().fit(rows.astype(np.float64)).score_samples(rows.astype(np.float64))
    single = model().fit(rows.astype(np.float32)).score_samples(rows.astype(np.float32))
    np.testing.assert_allclose(single, exact, atol=1e-3)


def test_the_coefficient_of_random_waves_sees_what_quarters_do_not() -> None:
    """A fine ripple has the same quarters everywhere; columns alone are split apart by both."""
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 1, 800)
    ripple = np.c_[t, (np.floor(12 * t) % 2) + 0.02 * rng.normal(size=800)]
    alone = rng.normal(size=(800, 2))
    nodes = {
        (name, how): SumProductNetwork(dependence=how, max_iter=0, random_state=0).fit(X).n_nodes_
        for name, X in (("ripple", ripple), ("alone", alone))
        for how in ("g2", "rdc")
    }
    assert nodes["alone", "g2"] == nodes["alone", "rdc"] == 3  # a product of two leaves
    assert nodes["ripple", "rdc"] > 3
    hot = np.c_[rng.integers(0, 3, 300).astype(float), rng.normal(size=300)]
    hot[:, 1] += 2 * (hot[:, 0] == 1)
    hot[::9, 1] = np.nan
    assert SumProductNetwork(dependence="rdc", max_iter=0, random_state=0).fit(hot).n_nodes_ > 3


@pytest.mark.parametrize("structure", ["learn", "random"])
def test_a_weight_is_a_repetition_for_the_structure_too(structure: str) -> None:
    """Ranks, groups of rows and starts count weights, and nothing asks for the order of the rows."""
    rng = np.random.default_rng(1)
    hidden = rng.random(150) < 0.5
    X = np.c_[
        2 * (hidden[:, None] - 0.5) + rng.normal(size=(150, 2)),
        rng.exponential(size=150) + 0.3 * hidden,
    ]
    X[::17, 1] = np.nan
    w = rng.integers(0, 4, len(X))
    for dependence in ("g2", "rdc") if structure == "learn" else ("g2",):
        weighted = SumProductNetwork(structure, dependence=dependence, max_iter=5, random_state=0)
        repeated = SumProductNetwork(structure, dependence=dependence, max_iter=5, random_state=0)
        weighted.fit(X, sample_weight=w)
        rows = rng.permutation(np.repeat(np.arange(len(X)), w))
        repeated.fit(X[rows])
        assert weighted.n_nodes_ == repeated.n_nodes_
        found = weighted.score_samples(X)
        np.testing.assert_allclose(found, repeated.score_samples(X), atol=1e-8)
