"""Autoencoders: sizes, PCA as the linear case, sparse codes, noise, slopes, likelihoods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn

import groundstate
from groundstate import (
    Autoencoder,
    ContractiveAutoencoder,
    DenoisingAutoencoder,
    SparseAutoencoder,
)
from groundstate.data import make_disc
from groundstate.errors import DataError, Unsupported
from groundstate.nn import summary

QUICK: dict[str, Any] = {"learning_rate_init": 1e-2, "n_iter_no_change": np.inf, "random_state": 0}


def curve(n: int = 300, seed: int = 0) -> NDArray[np.float64]:
    t = np.random.default_rng(seed).uniform(-1, 1, n)
    return np.column_stack([t, t**2, np.sin(2 * t), -t])


@pytest.fixture(scope="module")
def digits() -> NDArray[np.float64]:
    return load_digits().data[:300] / 16


def n_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_the_listing_for_mnist_has_its_parameters() -> None:
    X = np.random.default_rng(0).random((20, 28, 28))
    model = Autoencoder(network="mnist-listing", max_iter=1, random_state=0).fit(X)
    energy = model.energy_
    assert n_parameters(energy.encoder) == 109_555
    assert n_parameters(energy.encoder) + n_parameters(energy.decoder) == 219_891
    assert model.transform(X).shape == (20, 3)
    back = model.reconstruct(X)
    assert back.shape == X.shape and back.min() >= 0 and back.max() <= 1
    assert [type(m).__name__ for m in energy.encoder.modules()].count("Tanh") == 3
    assert "encoder" in str(model.plot_network())


def test_a_linear_autoencoder_finds_the_subspace_of_pca() -> None:
    rng = np.random.default_rng(0)
    X = (
        rng.normal(size=(200, 5))
        * [3.0, 2.0, 1.0, 0.5, 0.3]
        @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    )
    X -= X.mean(0)
    model = Autoencoder(
        2, (), "identity", scale=None, batch_size=200, max_iter=3000, learning_rate_init=3e-3,
        n_iter_no_change=np.inf, random_state=0,
    ).fit(X)  # fmt: skip
    pca = PCA(2).fit(X)
    decoder: Any = model.energy_.decoder
    axes = decoder.layers[0].weight.detach().numpy()
    assert np.max(subspace_angles(axes, pca.components_.T)) < 1e-3
    discarded = np.linalg.eigvalsh(np.cov(X.T, bias=True))[:3].sum()
    assert model.reconstruction_error(X).mean() == pytest.approx(discarded, rel=1e-4)


def test_the_error_falls_with_the_length_of_the_code() -> None:
    X = curve()
    errors = [
        Autoencoder(k, (16,), "tanh", max_iter=100, **QUICK).fit(X).reconstruction_error(X).mean()
        for k in (1, 2, 3)
    ]
    assert errors[0] > errors[1] > errors[2]


def test_a_code_as_long_as_a_row_warns_and_the_identity_loses_nothing() -> None:
    X = curve()[:, :2]
    same = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    for layer in same:
        nn.init.eye_(layer.weight)
    with pytest.warns(UserWarning, match="a code of 2 numbers holds rows of 2 as they are"):
        model = Autoencoder(2, network=same, max_iter=1, random_state=0).fit(X)
    np.testing.assert_allclose(model.reconstruction_error(X), 0)
    np.testing.assert_allclose(model.reconstruct(X), X, atol=1e-12)


def test_a_disc_in_space_is_lossless_at_its_own_dimension() -> None:
    X = make_disc(400, random_state=0)
    model = Autoencoder(2, (), "identity", max_iter=400, scale=None, **QUICK).fit(X)
    assert model.reconstruction_error(X).mean() < 1e-3


@pytest.mark.parametrize(
    "likelihood", ["gaussian", "student_t", "bernoulli", "discretized_logistic"]
)
def test_likelihoods_of_the_reconstruction(digits: NDArray[np.float64], likelihood: str) -> None:
    model = Autoencoder(
        4, (32,), likelihood=likelihood, likelihood_scale="learned", max_iter=30, **QUICK
    ).fit(digits)
    first, last = model.loss_curve_[0], model.loss_curve_[-1]
    assert last < first and model.log_prob_kind_ == "none"
    assert model.score(digits) == pytest.approx(-model.reconstruction_error(digits).mean())
    drawn = model.sample(20, random_state=0)
    assert drawn.shape == (20, 64) and np.isfinite(drawn).all()
    if likelihood == "bernoulli":
        assert set(np.unique(drawn)) <= {0.0, 1.0}
        with pytest.raises(DataError, match="numbers from 0 to 1"):
            Autoencoder(2, likelihood="bernoulli").fit(digits * 16)


def test_tables_of_mixed_columns() -> None:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 300)
    size = np.select([kind == "a", kind == "b"], [-3.0, 0.0], 3.0) + 0.3 * rng.normal(size=300)
    table = pd.DataFrame({"kind": kind, "size": size, "twin": size + 0.1 * rng.normal(size=300)})
    for likelihood in ("mixed", "squared"):
        model = Autoencoder(1, (16,), likelihood=likelihood, max_iter=120, **QUICK).fit(table)
        back = model.reconstruct(table)
        assert (back["kind"] == table["kind"]).mean() > 0.95
        gaps = table.head(30).copy()
        gaps["kind"] = None
        filled = model.impute(gaps, random_state=0)
        assert (filled["kind"].to_numpy() == table["kind"].head(30).to_numpy()).mean() > 0.9


def test_convolutions_read_pictures(digits: NDArray[np.float64]) -> None:
    pictures = digits.reshape(-1, 8, 8)
    model = Autoencoder(
        6, (8, 16), network="conv", likelihood="bernoulli", max_iter=15, **QUICK
    ).fit(pictures)
    assert model.reconstruct(pictures[:3]).shape == (3, 8, 8)
    assert model.loss_curve_[-1] < 0.8 * model.loss_curve_[0]
    assert summary(model.energy_.encoder, (64,)) is not None
    assert model.latent_grid is not None
    between = model.interpolate(pictures[0], pictures[1], 5)
    np.testing.assert_allclose(between[0], model.reconstruct(pictures[:1])[0], atol=1e-5)


def test_codes_follow_the_condition(digits: NDArray[np.float64]) -> None:
    y = load_digits().target[:300]
    model = Autoencoder(2, (32,), max_iter=60, **QUICK).fit(digits, y)
    zeros, ones = (model.sample(50, y=k, random_state=0).mean(0) for k in (0, 1))
    near = [np.square(digits[y == k].mean(0) - zeros).sum() for k in (0, 1)]
    assert near[0] < near[1] and not np.allclose(zeros, ones)


# --- sparse ------------------------------------------------------------------------------


def test_larger_penalties_leave_fewer_entries(digits: NDArray[np.float64]) -> None:
    counts = []
    for strength in (0.01, 0.3, 3.0):
        model = SparseAutoencoder(40, strength=strength, max_iter=40, **QUICK).fit(digits)
        counts.append((model.transform(digits) > 1e-6).sum(1).mean())
    assert counts[0] > counts[1] > counts[2]
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1, rtol=1e-5)


def test_rare_codes_have_the_wanted_mean(digits: NDArray[np.float64]) -> None:
    model = SparseAutoencoder(
        30, penalty="kl", strength=10.0, scale=None, max_iter=100, **QUICK
    ).fit(digits)
    rho = model.transform(digits).mean(0)
    assert np.abs(rho - 0.05).max() < 0.02
    penalty: Any = model.rule_.penalty
    np.testing.assert_allclose((penalty.running / penalty.seen).numpy(), rho, atol=0.01)
    with pytest.raises(ValueError, match="must be 'sigmoid', got 'relu'"):
        SparseAutoencoder(5, penalty="kl", code_activation="relu").fit(digits)


def test_only_the_largest_entries_stay(digits: NDArray[np.float64]) -> None:
    model = SparseAutoencoder(50, (16,), penalty="topk", k=3, max_iter=20, **QUICK).fit(digits)
    assert (model.transform(digits) != 0).sum(1).max() <= 3
    with pytest.raises(AttributeError, match="behind hidden layers"):
        _ = model.components_


# --- noise and slopes --------------------------------------------------------------------


def test_the_best_repair_of_a_normal_variable_shrinks_it() -> None:
    X = np.random.default_rng(0).normal(size=(4000, 1))
    X = (X - X.mean()) / X.std()
    model = DenoisingAutoencoder(
        1, (), "identity", level=0.5, scale=None, max_iter=60, batch_size=500, **QUICK
    ).fit(X)
    slope = model.denoise(np.array([[1.0]])) - model.denoise(np.array([[0.0]]))
    assert slope[0, 0] == pytest.approx(1 / 1.25, abs=0.03)


@pytest.mark.parametrize("corruption", ["gaussian", "mask", "saltpepper"])
def test_repaired_rows_are_nearer(digits: NDArray[np.float64], corruption: str) -> None:
    model = DenoisingAutoencoder(
        32, (64,), corruption=corruption, level=0.3, scale=None, max_iter=60, **QUICK
    ).fit(digits[:200])
    held_out = digits[200:]
    noise: Any = model.rule_.corruption
    worse = noise(torch.from_numpy(held_out), torch.Generator().manual_seed(0)).numpy()
    assert np.square(model.denoise(worse) - held_out).mean() < np.square(worse - held_out).mean()


def test_without_noise_or_slope_it_is_the_autoencoder() -> None:
    X = curve()
    plain = Autoencoder(2, (8,), max_iter=20, **QUICK).fit(X)
    for other in (
        DenoisingAutoencoder(2, (8,), level=0.0, max_iter=20, **QUICK).fit(X),
        ContractiveAutoencoder(2, (8,), gamma=0.0, code_activation=None, max_iter=20, **QUICK).fit(
            X
        ),
    ):
        np.testing.assert_allclose(other.transform(X), plain.transform(X), atol=1e-12)


@pytest.mark.parametrize("hidden", [(), (16,)])
def test_a_larger_gamma_makes_flatter_codes(hidden: tuple[int, ...]) -> None:
    X = curve()
    slopes = []
    for gamma in (0.0, 0.1, 10.0):
        model = ContractiveAutoencoder(6, hidden, gamma=gamma, max_iter=60, **QUICK).fit(X)
        x = model.coding_.encode(torch.from_numpy(X))
        jacobian = torch.func.vmap(
            torch.func.jacrev(lambda r, m=model: m.energy_.encoder(r[None])[0])
        )
        slopes.append(float(jacobian(x).square().sum((1, 2)).mean().detach()))
    assert slopes[0] > slopes[1] > slopes[2]


# --- the contract ------------------------------------------------------------------------


def test_best_weights_of_both_networks_come_back() -> None:
    """Early stopping keeps encoder and decoder of one and the same epoch."""
    X = curve()
    model = Autoencoder(
        2, (16,), early_stopping=True, max_iter=60, n_iter_no_change=5, learning_rate_init=0.05,
        random_state=0,
    ).fit(X)  # fmt: skip
    best = max(model.validation_scores_)  # type: ignore[type-var]
    assert best < 0 and model.reconstruction_error(X).mean() < 2 * -best + 0.05


def test_a_row_of_weight_two_is_the_row_twice() -> None:
    X = curve(60)
    w = np.where(np.arange(60) < 20, 2.0, 1.0)
    a = Autoencoder(2, (8,), max_iter=10, batch_size=16, **QUICK).fit(X, sample_weight=w)
    b = Autoencoder(2, (8,), max_iter=10, batch_size=16, **QUICK).fit(np.vstack([X, X[:20]]))
    np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-8)
    np.testing.assert_allclose(a.sample(5, random_state=0), b.sample(5, random_state=0), atol=1e-7)


def test_learning_goes_on_from_a_file(tmp_path: Any) -> None:
    X = curve()
    model = Autoencoder(2, (8,), max_iter=5, warm_start=True, **QUICK).fit(X)
    back = groundstate.load(model.save(tmp_path / "m.gs"))
    np.testing.assert_array_equal(back.fit(X).transform(X), model.fit(X).transform(X))


def test_there_is_no_density() -> None:
    model = Autoencoder(1, (4,), max_iter=1).fit(curve())
    assert not hasattr(model, "score_samples")
    with pytest.raises(Unsupported, match="assess_generator"):
        model.score_samples(curve())
    with pytest.raises(TypeError, match="a pair of modules"):
        Autoencoder(1, network=(nn.Linear(4, 1),)).fit(curve())
