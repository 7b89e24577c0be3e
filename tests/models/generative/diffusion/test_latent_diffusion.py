"""Diffusion in the codes of an autoencoder: identities, stages, tokens."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

import groundstate
from groundstate import DDPM, VAE, Autoencoder, FlowMatching, LatentDiffusion, VQAutoencoder
from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.denoise import TokenDenoiser

QUICK: dict[str, Any] = {
    "hidden_layer_sizes": (16,),
    "max_iter": 15,
    "random_state": 0,
    "device": None,
}


def plane(n: int = 200, seed: int = 0) -> np.ndarray:
    """A ring in a plane of eight dimensions."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, n)
    A = np.random.default_rng(9).normal(size=(2, 8))
    return np.column_stack([np.cos(t), np.sin(t)]) @ A


def test_with_the_identity_it_is_ddpm() -> None:
    X = np.random.default_rng(0).normal([1.0, -2.0], [1.0, 0.5], (150, 2))
    X /= X.std()  # codes that have unit spread stay as they are
    plain = DDPM(20, "cosine", **QUICK).fit(X)
    model = LatentDiffusion(FunctionTransformer(), DDPM(20, "cosine", **QUICK)).fit(X)
    np.testing.assert_array_equal(
        model.sample(20, random_state=0), plain.sample(20, random_state=0)
    )
    np.testing.assert_array_equal(model.reconstruct(X), X)


def test_codes_have_unit_spread_and_come_back() -> None:
    X = plane()
    model = LatentDiffusion(PCA(2), DDPM(30, "cosine", **{**QUICK, "max_iter": 100})).fit(X)
    assert model.transform(X).std() == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(model.reconstruct(X), X, atol=1e-5)
    drawn, codes = model.sample(300, return_latent=True, random_state=0)
    assert drawn.shape == (300, 8) and codes.shape == (300, 2)
    np.testing.assert_allclose(model.transform(drawn), codes, atol=1e-4)  # draws lie in the plane
    assert np.linalg.norm(codes, axis=1).mean() == pytest.approx(np.sqrt(2), rel=0.3)
    whole = DDPM(30, "cosine", **QUICK).fit(X)  # the denoiser of codes is the smaller one
    small, large = (
        sum(p.numel() for p in m.energy_.parameters()) for m in (model.diffusion_, whole)
    )
    assert small < large
    assert model.energy(X).shape == (200,)


@pytest.mark.parametrize("kind", ["kl", "vq"])
def test_the_named_autoencoders(kind: str, tmp_path: Path) -> None:
    X = plane()
    made = LatentDiffusion(kind, DDPM(20, "cosine", **QUICK), n_components=4, random_state=0)
    first = made._first()
    assert first.random_state == 0
    if kind == "kl":
        assert isinstance(first, VAE) and first.beta == 1e-6
    else:
        assert isinstance(first, VQAutoencoder) and first.n_codes == 512
    short = first.set_params(hidden_layer_sizes=(32,), max_iter=80, learning_rate_init=5e-3)
    model = LatentDiffusion(short, DDPM(20, "cosine", **QUICK))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert np.mean((model.reconstruct(X) - X) ** 2) < 0.15 * X.var()
    path = model.save(tmp_path / "model.gs")
    back = groundstate.load(path)
    np.testing.assert_array_equal(back.sample(4, random_state=1), model.sample(4, random_state=1))
    gaps = X[:3].copy()
    gaps[:, 0] = np.nan
    filled = model.impute(gaps, random_state=0)
    np.testing.assert_array_equal(filled[:, 1:], gaps[:, 1:])
    assert np.isfinite(filled).all()


def test_stages_may_be_given_fitted_and_of_any_kind() -> None:
    X = plane()
    first = Autoencoder(2, **QUICK).fit(X)
    codes = first.transform(X)
    second = DDPM(20, "cosine", **QUICK).fit(codes / codes.std())
    both = LatentDiffusion(first, second, prefit="both").fit(X)
    assert both.autoencoder_ is first and both.diffusion_ is second
    flow = LatentDiffusion(
        first, FlowMatching(n_steps=5, **QUICK), prefit="autoencoder"
    ).fit(X)  # fmt: skip
    assert flow.sample(3, random_state=0).shape == (3, 8)
    with pytest.raises(NotFittedError):
        LatentDiffusion(Autoencoder(2), prefit="autoencoder").fit(X)
    with pytest.raises(ValueError, match="prefit must be"):
        LatentDiffusion(first, prefit="diffusion").fit(X)
    with pytest.raises(ValueError, match="'kl', 'vq'"):
        LatentDiffusion("pca").fit(X)
    with pytest.raises(Unsupported, match="assess_generator"):
        both.score_samples(X)


def test_tokens_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 240)
    X = np.where(kind[:, None] == 1, 2.0, -2.0) + 0.2 * rng.normal(size=(240, 4))
    words = rng.normal(size=(2, 3, 2))  # three tokens of two numbers for each kind
    settings = {**QUICK, "max_iter": 80, "learning_rate_init": 5e-3}
    model = LatentDiffusion(PCA(2), DDPM(20, "cosine", **settings)).fit(X, words[kind])
    assert model.token_shape_ == (3, 2)
    assert isinstance(model.diffusion_.energy_.net, TokenDenoiser)
    means = [model.sample(60, words[k], random_state=0).mean() for k in (0, 1)]
    assert means[0] < -1 and means[1] > 1
    assert model.sample(y=words[[0, 1]], random_state=0).shape == (2, 4)
    assert model.energy(X[:5], words[kind[:5]]).shape == (5,)
    with pytest.raises(ShapeError, match="tokens"):
        model.sample(1, words[0][:2])


def test_a_denoiser_of_tokens() -> None:
    net = TokenDenoiser(2, q=6, tokens=3, hidden=(8,)).double()
    with torch.no_grad():
        net.head.weight.normal_()
    x, t = torch.randn(5, 2).double(), torch.arange(1, 6)
    y = torch.randn(5, 6).double()
    assert not torch.allclose(net(x, t, y), net(x, t, y.flip(0)))
    assert torch.autograd.gradcheck(
        lambda x, y: net(x, t, y), (x.requires_grad_(), y.requires_grad_())
    )
    with pytest.raises(ValueError, match="equal size"):
        TokenDenoiser(2, q=5, tokens=2)
