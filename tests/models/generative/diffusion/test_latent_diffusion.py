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


class WhiteNoise(torch.nn.Module):
    """The noise that is expected in codes of N(0, I)."""

    def __init__(self, bars: torch.Tensor) -> None:
        super().__init__()
        self.bars = bars.float()

    def forward(self, z: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return (1 - self.bars[t - 1])[:, None].sqrt() * z


@pytest.mark.filterwarnings("ignore:.*code")
def test_cells_given_others_are_those_of_the_gaussian() -> None:
    """x = m + Lz with codes of N(0, I): the denoiser knows nothing of what columns have in common, which
    the decoder alone does, and x₁ given x₂ = 2 has mean 5/3 and variance 2/3 all the same."""
    m = torch.tensor([1.0, 1.0, -1.0])
    L = torch.linalg.cholesky(torch.tensor([[2.0, 2, 0], [2, 3, 0], [0, 0, 1]]))
    A = torch.linalg.inv(L)
    encoder, decoder = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    with torch.no_grad():
        for layer, W, b in ((encoder, A, -A @ m), (decoder, L, m)):
            layer.weight.copy_(W)
            layer.bias.copy_(b)
    still = {"max_iter": 1, "learning_rate_init": 1e-9, "scale": None, "random_state": 0}
    white = np.random.default_rng(0).normal(size=(60, 3))
    white -= white.mean(0)
    white /= white.std()
    X = white @ L.numpy().T + m.numpy()
    first = Autoencoder(3, network=(encoder, decoder), **still).fit(X)
    second = DDPM(50, "cosine", hidden_layer_sizes=(4,), clip_denoised=False, **still).fit(white)
    second.energy_.net = WhiteNoise(second.noise_schedule_.alpha_bars)
    model = LatentDiffusion(first, second, prefit="both").fit(X)
    gaps = np.tile([np.nan, 2.0, -1.0], (1000, 1))
    drawn = model.impute(gaps, "sample", random_state=0)
    np.testing.assert_array_equal(drawn[:, 1:], gaps[:, 1:])
    assert drawn[:, 0].mean() == pytest.approx(5 / 3, rel=0.1)
    assert drawn[:, 0].var() == pytest.approx(2 / 3, rel=0.1)
    assert model.impute(gaps[:4], random_state=0)[:, 0].mean() == pytest.approx(5 / 3, rel=0.1)
    assert model.impute(gaps[:1], "minimise", random_state=0)[0, 0] == pytest.approx(
        5 / 3, rel=0.05
    )
    blank = model.impute(np.full((500, 3), np.nan), "sample", random_state=1)
    np.testing.assert_allclose(np.cov(blank.T), (L @ L.T).numpy(), atol=0.5)


def test_filling_in_needs_a_denoiser_of_codes() -> None:
    X = plane()
    flow = FlowMatching(n_steps=5, **QUICK)
    model = LatentDiffusion(Autoencoder(2, **QUICK), flow).fit(X)
    with pytest.raises(Unsupported, match="DDPM"):
        model.impute(X[:1])
