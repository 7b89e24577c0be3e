"""The variational autoencoder: bounds, held-out likelihood, posteriors, missing cells, labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import groundstate
from groundstate import VAE, ConditionalVAE, ProbabilisticPCA
from groundstate.energy import DeepLatentEnergy
from groundstate.energy.latent.deep.priors import NormalPrior
from groundstate.errors import DataError, Unreliable
from groundstate.learn import NegativeELBO
from groundstate.nn.heads.likelihoods import SquaredError

QUICK: dict[str, Any] = {
    "hidden_layer_sizes": (16,), "learning_rate_init": 1e-2, "max_iter": 60, "random_state": 0,
    "device": None,
}  # fmt: skip


def ring(n: int = 200, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * rng.normal(size=(n, 2))


def line(n: int = 300, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 1))
    return z @ np.array([[1.0, -1.0, 0.5]]) + 0.4 * rng.normal(size=(n, 3))


def test_the_listing_has_its_parameters() -> None:
    X = np.random.default_rng(0).random((20, 784))
    model = VAE(network="mnist-listing", max_iter=1, random_state=0).fit(X)
    parts = (model.energy_, model.rule_)
    assert sum(p.numel() for part in parts for p in part.parameters()) == 1_068_820
    assert sum(p.numel() for p in model.rule_.encoder.parameters()) == 534_276
    assert model.energy_.likelihood.name == "bernoulli"
    with pytest.raises(ValueError, match="784 pixels"):
        VAE(network="mnist-listing").fit(ring())


def test_a_perfect_row_at_the_prior_costs_nothing() -> None:
    """Mean form: x' = x, mu = 0, sigma = 1."""
    x = torch.tensor([[0.3, -1.0]])
    decoder, encoder = nn.Linear(2, 2), nn.Linear(2, 4)
    for net in (decoder, encoder):
        nn.init.zeros_(net.weight)
        nn.init.zeros_(net.bias)
    decoder.bias.data.copy_(x[0])
    energy = DeepLatentEnergy(decoder, SquaredError(2), NormalPrior(2))
    loss = NegativeELBO(encoder)(energy, {"x": x}).loss
    assert loss.item() == pytest.approx(0.0, abs=1e-7)


def test_bounds_and_estimates_against_quadrature() -> None:
    X = ring()
    model = VAE(1, **QUICK).fit(X)
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    at = torch.linspace(-8, 8, 2001, dtype=torch.float64)
    x = model.coding_.encode(torch.from_numpy(X[:40]))
    with torch.no_grad():
        e = torch.stack(
            [model.energy_(x=row.expand(2001, -1), z=at[:, None]) for row in x]
        )  # (40, 2001)
    exact = torch.logsumexp(-e, 1) + np.log(16 / 2000) - model.coding_.log_scale
    bound = model.elbo(X[:40], n_samples=2000)
    assert (bound <= exact.numpy() + 0.05).all()
    report = model.importance(X[:40], n_importance=4000)
    good = report.pareto_k < 0.5
    assert good.sum() > 20
    np.testing.assert_allclose(report.log_prob[good], exact.numpy()[good], atol=0.05)
    assert (report.ess <= 4000).all() and (report.ess >= 1).all()


def test_codes_together_are_the_prior() -> None:
    X = line()
    model = VAE(1, **{**QUICK, "max_iter": 150}).fit(X)
    x = model.coding_.encode(torch.from_numpy(X))
    q = model._family.parts(model._numbers(x, None).detach())
    mean, var = float(q.mean.mean()), float(q.mean.var() + q.logvar.exp().mean())
    assert abs(mean) < 0.2 and var == pytest.approx(1.0, abs=0.25)
    assert model.active_units_.tolist() == [True]


def test_learning_raises_the_held_out_likelihood() -> None:
    X, new = line(), line(seed=1)
    untrained = VAE(1, **{**QUICK, "max_iter": 1, "learning_rate_init": 1e-6}).fit(X)
    trained = VAE(1, **QUICK).fit(X)
    with quiet():
        assert trained.score(new) > untrained.score(new) + 0.2


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings about heavy tails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Unreliable)
        yield


@pytest.mark.parametrize("posterior", ["fixed", "diag", "full", "iaf", "vmf", "categorical"])
def test_posteriors_learn(posterior: str) -> None:
    X = ring(120)
    model = VAE(3, posterior=posterior, posterior_scale=0.5, **{**QUICK, "max_iter": 25}).fit(X)
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    rows = model.sample(50, random_state=0)
    assert rows.shape == (50, 2) and np.isfinite(rows).all()
    codes = model.transform(X)
    assert codes.shape == (120, 3)
    if posterior == "vmf":
        np.testing.assert_allclose(np.linalg.norm(codes, axis=1), 1.0, rtol=1e-5)
    if posterior == "categorical":
        np.testing.assert_allclose(codes.sum(1), 1.0, rtol=1e-5)
        assert model.log_prob_kind_ == "exact"
    one = model.elbo(X[:5])
    np.testing.assert_allclose(one[2], model.elbo(X[2:3])[0], rtol=1e-5)  # rows stand alone


@pytest.mark.parametrize("prior", ["mixture", "vampprior", "flow", "posthoc_gmm"])
def test_priors_learn(prior: str, tmp_path: Path) -> None:
    X = ring(150)
    model = VAE(
        2, prior=prior, n_prior_components=4, batch_size=128, **{**QUICK, "max_iter": 25}
    ).fit(X)
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    assert model.sample(20, random_state=0).shape == (20, 2)
    back = groundstate.load(model.save(tmp_path / "model.gs"))
    np.testing.assert_array_equal(back.elbo(X), model.elbo(X))


@pytest.mark.filterwarnings("ignore:posterior collapse")
@pytest.mark.parametrize("prior", ["normal", "vampprior", "posthoc_gmm"])
def test_a_weight_is_a_repetition_for_priors_that_look_at_rows(prior: str) -> None:
    rng = np.random.default_rng(0)
    X, w = line(80), rng.integers(0, 4, 80)
    settings = {**QUICK, "prior": prior, "n_prior_components": 4, "max_iter": 3}
    weighted = VAE(2, **settings).fit(X, sample_weight=w)
    repeated = VAE(2, **settings).fit(X[rng.permutation(np.repeat(np.arange(80), w))])
    np.testing.assert_allclose(weighted.elbo(X), repeated.elbo(X), atol=1e-6)
    np.testing.assert_array_equal(weighted.active_units_, repeated.active_units_)


def test_one_component_is_the_normal_prior() -> None:
    X = line(100)
    normal = VAE(2, **QUICK).fit(X)
    one = VAE(2, prior="mixture", n_prior_components=1, **{**QUICK, "max_iter": 1}).fit(X)
    z = torch.randn(4, 2, dtype=torch.float64)
    assert torch.allclose(one.energy_.prior.log_prob(z), normal.energy_.prior.log_prob(z))


def test_refusals() -> None:
    X = ring(30)
    for settings, says in (
        ({"posterior": "vmf", "prior": "flow"}, "on a sphere"),
        ({"prior": "vampprior", "posterior": "full"}, "normals of posterior='diag'"),
        ({"beta": "cosine"}, "'linear:epochs'"),
        ({"objective": "iwae", "free_bits": 0.1}, "one weight for everything"),
        ({"posterior": "iaf", "grad": "stl"}, "only for its own draws"),
        ({"network": (nn.Linear(2, 3), nn.Linear(2, 2))}, "must map"),
    ):
        with pytest.raises(ValueError, match=says):
            VAE(2, **{**QUICK, "max_iter": 1, **settings}).fit(X)
    with pytest.raises(DataError, match="from 0 to 1"):
        VAE(2, "bernoulli", max_iter=1).fit(X)
    with pytest.raises(ValueError, match="normal posteriors"):
        VAE(2, posterior="iaf").fit_local(X)


def test_a_large_beta_collapses_and_says_so() -> None:
    X = line()
    with pytest.warns(Unreliable, match="posterior collapse"):
        model = VAE(2, beta=1000.0, **{**QUICK, "max_iter": 80}).fit(X)
    assert not model.active_units_.any()
    back = model.reconstruct(X)
    assert np.abs(back - X.mean(0)).max() < 0.3  # whatever the row, the mean
    q = model._family.parts(model._numbers(model.coding_.encode(torch.from_numpy(X)), None))
    assert float(model._family.kl(q, model.energy_.prior).sum(1).mean().detach()) < 0.05


def test_beta_rises_by_its_schedule() -> None:
    model = VAE(2, beta="linear:8:2.0", **{**QUICK, "max_iter": 6}).fit(line(60))
    assert model.history_.extra["kl_weight"] == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.25, 1.5])
    assert float(model.rule_.kl_weight) == pytest.approx(1.5)


# --- without an encoder, and beyond it ---------------------------------------------------


def test_a_linear_decoder_has_the_ridge_mean() -> None:
    X = line(120)
    settings = {
        **QUICK, "hidden_layer_sizes": (), "likelihood_scale": 1.0, "prior_scale": 2.0,
        "scale": None, "max_iter": 40,
    }  # fmt: skip
    local = VAE(1, **settings).fit_local(X)
    (layer,) = [m for m in local.energy_.decoder.modules() if isinstance(m, nn.Linear)]
    W, b = (p.detach().numpy().astype(float) for p in (layer.weight, layer.bias))
    ridge = (X - b) @ W @ np.linalg.inv(W.T @ W + np.eye(1) / 2.0**2)
    np.testing.assert_allclose(local.transform(X), ridge, atol=5e-3)
    new = line(7, seed=5)
    np.testing.assert_allclose(
        local.transform(new), (new - b) @ W @ np.linalg.inv(W.T @ W + np.eye(1) / 4), atol=5e-3
    )
    assert local.rule_.latent.phi.shape == (120, 2)  # one row of numbers each
    amortised = VAE(1, **{**settings, "max_iter": 150}).fit(X)
    assert amortised.elbo(X).mean() == pytest.approx(local.elbo(X).mean(), abs=0.1)


def test_refining_lowers_no_row() -> None:
    X = ring(80)
    model = VAE(2, **{**QUICK, "max_iter": 20}).fit(X)
    found = model.refine(X, n_steps=10)
    assert (found.elbo >= found.start - 1e-9).all()
    assert found.elbo.mean() > found.start.mean()
    assert found.mean.shape == found.std.shape == (80, 2)
    none = model.refine(X, n_steps=0)
    np.testing.assert_allclose(none.mean, model.transform(X))


def test_narrow_proposals_are_found_out() -> None:
    """A proposal of a fifth of the posterior's variance has weights with k = 1 - 1/5."""
    model = exact_gaussian(0.2)
    X = np.random.default_rng(1).normal(size=(20, 3))
    with pytest.warns(Unreliable, match="heavy tail"):
        model.score_samples(X, n_importance=4000)
    good = exact_gaussian(1.5).importance(X)
    assert np.median(good.pareto_k) < 0.5 < np.median(model.importance(X, None, 4000).pareto_k)


# --- missing cells -----------------------------------------------------------------------


def exact_gaussian(wide: float) -> VAE:
    """N((1, 1, -1), [[2, 2, 0], [2, 3, 0], [0, 0, 1]]) as a linear decoder with noise variance .2 and
    an encoder whose spread is off by a factor, which the test of proposals has to make up for."""
    cov = np.array([[2.0, 2, 0], [2, 3, 0], [0, 0, 1]])
    b, s2 = np.array([1.0, 1.0, -1.0]), 0.2
    X = np.random.default_rng(0).multivariate_normal(b, cov, 200)
    model = VAE(3, **{**QUICK, "hidden_layer_sizes": (), "max_iter": 1, "scale": None}).fit(X)
    W = np.linalg.cholesky(cov - s2 * np.eye(3))
    M = np.linalg.inv(np.eye(3) + W.T @ W / s2)
    A = M @ W.T / s2
    numbers = (
        np.concatenate([A, np.zeros((3, 3))]),
        np.concatenate([-A @ b, np.log(np.diag(M) * wide)]),
    )
    with torch.no_grad():
        for net, weight, bias in (
            (model.energy_.decoder, W, b), (model.rule_.encoder, *numbers),
        ):  # fmt: skip
            (layer,) = [m for m in net.modules() if isinstance(m, nn.Linear)]
            layer.weight.copy_(torch.from_numpy(weight))
            layer.bias.copy_(torch.from_numpy(bias))
        model.energy_.likelihood.log_scale.fill_(np.log(np.sqrt(s2) - 1e-3))
    return model


def test_missing_cells_have_the_conditional_distribution() -> None:
    model = exact_gaussian(1.3)
    rows = np.tile([np.nan, 2.0, -1.0], (3000, 1))
    drawn = model.impute(rows, "sample", random_state=0)[:, 0]
    assert drawn.mean() == pytest.approx(1.666667, rel=0.1)
    assert drawn.var() == pytest.approx(0.666667, rel=0.1)
    mean = model.impute(rows[:3], "mean", random_state=0)[:, 0]
    assert np.abs(mean - 1.666667).max() < 0.35
    best = model.impute(rows[:2], "minimise", random_state=0)[:, 0]
    np.testing.assert_allclose(best, 1.666667, atol=0.05)
    blank = model.impute(np.full((3000, 3), np.nan), "sample", random_state=0)
    np.testing.assert_allclose(blank.mean(0), [1, 1, -1], atol=0.15)


def test_exact_model_scores_its_gaussian() -> None:
    from scipy.stats import multivariate_normal

    model = exact_gaussian(1.3)
    cov = np.array([[2.0, 2, 0], [2, 3, 0], [0, 0, 1]])
    X = np.random.default_rng(1).multivariate_normal([1, 1, -1], cov, 20)
    expected = multivariate_normal([1, 1, -1], cov).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X, n_importance=4000), expected, atol=0.1)


# --- labels ------------------------------------------------------------------------------


def two(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 1)) * [1.0, 0.5] + 0.2 * rng.normal(size=(n, 2))
    return X + 4.0 * y[:, None], y


@pytest.mark.parametrize("conditional_prior", [False, True])
def test_rows_given_their_label(conditional_prior: bool) -> None:
    X, y = two()
    settings = {**QUICK, "likelihood_scale": "per_dim", "max_iter": 150, "n_iter_no_change": 150}
    model = ConditionalVAE(2, conditional_prior=conditional_prior, **settings).fit(X, y)
    for label in (0, 1):
        drawn = model.sample(2000, y=label, random_state=0)
        np.testing.assert_allclose(drawn.mean(0), X[y == label].mean(0), atol=0.35)
        np.testing.assert_allclose(drawn.std(0), X[y == label].std(0), atol=0.3)
    with quiet():
        given = np.stack([model.score_samples(X[:30], np.full(30, c)) for c in (0, 1)])
        share = np.log([np.mean(y == 0), np.mean(y == 1)])[:, None]
        np.testing.assert_allclose(
            model.score_samples(X[:30]), np.logaddexp.reduce(given + share), rtol=1e-4
        )
    assert (model.predict(X) == y).mean() > 0.95


def test_few_labels_and_many_rows_without() -> None:
    X, y = two(300)
    known = np.full(300, -1)
    for c in (0, 1):
        known[np.flatnonzero(y == c)[:4]] = c
    model = ConditionalVAE(2, **{**QUICK, "max_iter": 80}).fit(X, known)
    assert model.classes_.tolist() == [0, 1]
    assert (model.predict(X) == y).mean() > 0.95
    assert model.predict_proba(X).shape == (300, 2)
    drawn = model.sample(500, y=1, random_state=0)
    np.testing.assert_allclose(drawn.mean(0), [4, 4], atol=0.8)
    with pytest.raises(DataError, match="every label is -1"):
        ConditionalVAE().fit(X, np.full(300, -1))


# --- learning goes on --------------------------------------------------------------------


def test_a_weight_of_two_is_the_row_twice() -> None:
    X = line(40)
    weight = np.where(np.arange(40) < 10, 2.0, 1.0)
    once = VAE(2, **{**QUICK, "max_iter": 5}).fit(X, sample_weight=weight)
    twice = VAE(2, **{**QUICK, "max_iter": 5}).fit(np.concatenate([X, X[:10]]))
    np.testing.assert_allclose(once.transform(X), twice.transform(X), rtol=1e-6, atol=1e-8)


def test_a_stored_model_goes_on_where_it_stopped(tmp_path: Path) -> None:
    X = line(60)
    model = VAE(2, **QUICK).partial_fit(X)
    back = groundstate.load(model.save(tmp_path / "model.gs"))
    for one in (model, back):
        one.partial_fit(X)
    np.testing.assert_array_equal(back.transform(X), model.transform(X))


def test_pictures_of_the_network() -> None:
    model = VAE(2, **{**QUICK, "max_iter": 1}).fit(line(20))
    plain, noisy = model.plot_network("plain"), model.plot_network()
    assert noisy.nodes == plain.nodes + 1 and "ε" in noisy.svg and "ε" not in plain.svg
    with pytest.raises(ValueError, match="'plain' or 'reparametrised'"):
        model.plot_network("3d")


@pytest.mark.slow
def test_linear_decoder_is_probabilistic_pca() -> None:
    X = line(400)
    settings = {**QUICK, "hidden_layer_sizes": (), "scale": None, "max_iter": 400}
    settings["n_iter_no_change"] = 400
    model = VAE(1, **settings).fit(X)
    oracle = ProbabilisticPCA(1).fit(X)
    assert model.score(X) == pytest.approx(oracle.score(X), abs=0.05)
