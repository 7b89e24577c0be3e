r"""Every engine that fills in cells, on a Gaussian whose conditional is known.

:math:`N((1, 1, -1), [[2, 2, 0], [2, 3, 0], [0, 0, 1]])` given :math:`x_2 = 2`: :math:`x_1` has mean 5/3 and
variance 2/3. The networks of each family are set to the Gaussian itself, so that what is tested is how cells
are filled in and not how long a network learned; families without a network learn it from rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import groundstate as gs
from groundstate.registry import models

MEAN = np.array([1.0, 1.0, -1.0])
COV = np.array([[2.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
m, S = torch.from_numpy(MEAN).float(), torch.from_numpy(COV).float()
ROWS = 2000


def gaussian_rows(n: int) -> np.ndarray:
    """Rows whose mean and covariance are the Gaussian's to the last digit."""
    raw = np.random.default_rng(0).normal(size=(n, 3))
    raw -= raw.mean(0)
    white = raw @ np.linalg.inv(np.linalg.cholesky(raw.T @ raw / n)).T
    return MEAN + white @ np.linalg.cholesky(COV).T


FEW = gaussian_rows(40)
ONCE: dict[str, Any] = {"max_iter": 1, "scale": None, "random_state": 0, "device": None}


class Denoiser(nn.Module):
    r"""The noise that is expected in a noisy row, :math:`-\sqrt{1 - \bar\alpha}\,\nabla\log p_t`."""

    def __init__(self, bars: Tensor) -> None:
        super().__init__()
        self.bars = bars.float()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        a = self.bars[t - 1][:, None, None]
        spread = a * S + (1 - a) * torch.eye(3)
        off = (x - a[:, :, 0].sqrt() * m)[..., None]
        return (1 - a[:, :, 0]).sqrt() * torch.linalg.solve(spread, off)[..., 0]


class SmoothedEnergy(nn.Module):
    r"""f of ``ScoreEnergy`` with which :math:`e_\sigma = \tfrac12(x-m)^\top(S + \sigma^2I)^{-1}(x-m)`."""

    def forward(self, given: Tensor) -> Tensor:
        level = given[:, 3:].exp()
        wide = (1 + level.square()).sqrt()
        x = given[:, :3] * wide
        spread = S + level[..., None].square() * torch.eye(3)
        e = 0.5 * ((x - m) * torch.linalg.solve(spread, (x - m)[..., None])[..., 0]).sum(1)
        return (level / wide) * (e - 0.5 * given[:, :3].square().sum(1))[:, None]


class Bowl(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * ((x - m) @ torch.linalg.inv(S) * (x - m)).sum(1, keepdim=True)


class Velocity(nn.Module):
    """The field that carries N(0, I) along straight paths to the Gaussian."""

    def forward(self, t: Tensor, x: Tensor, context: Tensor | None = None) -> Tensor:
        eye, mean, cov = torch.eye(3).to(x), m.to(x), S.to(x)
        t = torch.as_tensor(t).to(x).reshape(-1, 1, 1)
        spread = (1 - t) ** 2 * eye + t**2 * cov  # (1 or B, 3, 3)
        off = torch.linalg.solve(spread, (x - t[:, 0] * mean)[..., None])
        return mean + ((t * cov - (1 - t) * eye) @ off)[..., 0]


def linear(W: Tensor, b: Tensor, ignored: int = 0) -> nn.Linear:
    """A layer, blind to the last inputs."""
    layer = nn.Linear(W.shape[1] + ignored, W.shape[0])
    with torch.no_grad():
        layer.weight.copy_(torch.cat([W, torch.zeros(len(W), ignored)], 1))
        layer.bias.copy_(b)
    return layer


NOISE = 0.2  # variance of a row given its code


def coders(ignored: int = 0) -> tuple[nn.Module, nn.Module]:
    """Encoder and decoder of x = Wz + m + noise with WWᵀ + 0.2 I = S; W has orthogonal columns, so that
    the posterior is diagonal."""
    values, vectors = torch.linalg.eigh(S)
    W = vectors * (values - NOISE).sqrt()
    spread = 1 / (1 + (values - NOISE) / NOISE)
    back = spread[:, None] * W.T / NOISE
    numbers = linear(
        torch.cat([back, torch.zeros(3, 3)]), torch.cat([-back @ m, spread.log()]), ignored
    )
    return numbers, linear(W, m, ignored)


def _ddpm() -> Any:
    model = gs.DDPM(100, "cosine", hidden_layer_sizes=(4,), clip_denoised=False, **ONCE).fit(FEW)
    model.energy_.net = Denoiser(model.noise_schedule_.alpha_bars)
    return model


def _score(make: Any, **settings: Any) -> Any:
    model = make(hidden_layer_sizes=(4,), **ONCE, **settings).fit(FEW)
    model.energy_.net = SmoothedEnergy()
    return model


def _energy_model() -> Any:
    model = gs.EnergyModel(method="nce", confine=0.0, hidden_layer_sizes=(4,), **ONCE).fit(FEW)
    model.energy_.net = Bowl()
    return model


def _field(make: Any, **settings: Any) -> Any:
    model = make(hidden_layer_sizes=(4,), **ONCE, **settings).fit(FEW)
    model.energy_.continuous.velocity = Velocity()
    return model


def _flow() -> Any:
    rows = gaussian_rows(1000)
    settings = {"hidden_layer_sizes": (8,), "max_iter": 60, "learning_rate_init": 0.02}
    return gs.NormalizingFlow("maf", n_transforms=1, random_state=0, **settings).fit(rows)


def _vae() -> Any:
    return gs.VAE(
        3, network=coders(), likelihood_scale=math.sqrt(NOISE), learning_rate_init=1e-9, **ONCE
    ).fit(FEW)


def _deep_vae() -> Any:
    model = gs.HierarchicalVAE(
        (3, 1), encoder="bottom_up", hidden_layer_sizes=(4,), likelihood_scale=math.sqrt(NOISE),
        **ONCE,
    ).fit(FEW)  # fmt: skip
    numbers, decoder = coders()
    silent = linear(torch.zeros(6, 1), torch.zeros(6))
    model.energy_.decoder.net, model.energy_.prior.nets[0] = decoder, silent
    model.rule_.encoder, model._family.nets[0] = numbers, linear(torch.zeros(2, 3), torch.zeros(2))
    return model


def _conditional_vae() -> Any:
    y = np.arange(len(FEW)) % 2
    return gs.ConditionalVAE(
        3, network=lambda inputs, *_: coders(inputs - 3), likelihood_scale=math.sqrt(NOISE),
        learning_rate_init=1e-9, **ONCE,
    ).fit(FEW, y)  # fmt: skip


def _rbm() -> Any:
    r"""Many weak hidden bits: :math:`\sum_j\log(1 + e^{u_j})` with :math:`u = w^\top(x - m)` is
    :math:`\tfrac18\sum_ju_j^2` and a constant, and so takes :math:`\tfrac14\sum_jw_jw_j^\top` from the
    precision of the visible units."""
    many, variance = 400, 0.4
    model = gs.BernoulliRBM(
        3 * many, visible="gaussian", n_iter=1, learning_rate=1e-9, burn_in=150, random_state=0,
        scale=None, sigma=math.sqrt(variance),
    ).fit(FEW)  # fmt: skip
    rest = torch.eye(3) / variance - torch.linalg.inv(S)
    values, vectors = torch.linalg.eigh(rest)
    w = (vectors * (4 * values / many).sqrt()).T.repeat_interleave(many, 0)
    energy = model.energy_
    with torch.no_grad():
        energy.W.copy_(variance * w.T)  # u = xᵀW/σ² + c
        energy.c.copy_(-w @ m)
        energy.b.copy_(m - variance * 0.5 * w.sum(0))
    return model


def _game(make: Any, **settings: Any) -> Any:
    L = torch.linalg.cholesky(S)
    return make(
        3, generator=linear(L, m), max_iter=1, learning_rate_init=1e-9, scale=None, random_state=0,
        device=None, **settings,
    )  # fmt: skip


LINES: dict[str, Any] = {
    "hidden_layer_sizes": (16,), "activation": "identity", "max_iter": 30, "random_state": 0,
    "device": None, "learning_rate_init": 0.01,
}  # fmt: skip

# how a model of each family becomes the Gaussian
GAUSSIANS: dict[str, Callable[[], Any]] = {
    "LinearGaussianBayesianNetwork": lambda: gs.LinearGaussianBayesianNetwork().fit(FEW),
    "DiscreteBayesianNetwork": lambda: gs.DiscreteBayesianNetwork(n_bins=60).fit(gaussian_rows(200_000)),
    "SumProductNetwork": lambda: gs.SumProductNetwork(random_state=0).fit(gaussian_rows(2000)),
    "TableMixture": lambda: gs.TableMixture(random_state=0).fit(gaussian_rows(20_000)),
    "BernoulliRBM": _rbm,
    "KernelDensity": lambda: gs.KernelDensity(0.1).fit(gaussian_rows(100_000)),
    "AutoregressiveDensity": lambda: gs.AutoregressiveDensity(n_components=1, **LINES).fit(gaussian_rows(1000)),
    "MADE": lambda: gs.MADE(1, **LINES).fit(gaussian_rows(1000)),
    "VAE": _vae,
    "HierarchicalVAE": _deep_vae,
    "ConditionalVAE": _conditional_vae,
    "DDPM": _ddpm,
    "ScoreModel": lambda: _score(gs.ScoreModel),
    "ScoreSDE": lambda: _score(gs.ScoreSDE),
    "EnergyModel": _energy_model,
    "NormalizingFlow": _flow,
    "CNF": lambda: _field(gs.CNF, method="rk4", n_steps=4),
    "FlowMatching": lambda: _field(gs.FlowMatching),
    "GAN": lambda: _game(gs.GAN).fit(FEW),
    "WGAN": lambda: _game(gs.WGAN).fit(FEW),
    "EnergyGAN": lambda: _game(gs.EnergyGAN).fit(FEW),
}  # fmt: skip

# models that have no distribution, rows of pictures alone, or (the field) few bins, whose conditionals
# test_fields_and_circuits.py lists
OTHERS = {
    "Autoencoder", "ContractiveAutoencoder", "DenoisingAutoencoder", "SparseAutoencoder",
    "VQAutoencoder", "MarkovRandomField", "PixelCNN", "TranslationGAN", "ConditionalGAN",
}  # fmt: skip
SLOW = {
    "DiscreteBayesianNetwork", "SumProductNetwork", "BernoulliRBM", "KernelDensity", "DDPM",
    "ScoreModel", "ScoreSDE", "CNF", "FlowMatching", "NormalizingFlow", "EnergyModel",
}  # fmt: skip
ROUGH = {"GAN", "WGAN", "EnergyGAN", "KernelDensity"}  # their modes are those of single rows


def names() -> list[Any]:
    return [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in GAUSSIANS]


def test_every_generator_is_asked() -> None:
    registered = {info.name for info in models if info.role == "generator"}
    assert registered == set(GAUSSIANS) | OTHERS


@pytest.mark.parametrize("name", names())
def test_the_conditional_of_a_gaussian(name: str) -> None:
    """Draws of x₁ given x₂ = 2 within 10 % of 5/3 and 2/3; known cells to the bit; no cells known: a draw."""
    model = GAUSSIANS[name]()
    many = ROWS // 2 if name in ("CNF", "BernoulliRBM") else ROWS
    gaps = np.tile([np.nan, 2.0, -1.0], (many, 1))
    drawn = np.asarray(model.impute(gaps, "sample", random_state=0))
    np.testing.assert_array_equal(drawn[:, 1:], gaps[:, 1:])
    assert drawn[:, 0].mean() == pytest.approx(5 / 3, rel=0.1)
    assert drawn[:, 0].var() == pytest.approx(2 / 3, rel=0.1)
    means = np.asarray(model.impute(gaps[:8], random_state=0))[:, 0]
    assert means.mean() == pytest.approx(5 / 3, rel=0.1)

    blank = np.asarray(model.impute(np.full((many, 3), np.nan), "sample", random_state=1))
    draws = np.asarray(model.sample(many, random_state=2))
    np.testing.assert_allclose(blank.mean(0), draws.mean(0), atol=0.25)
    np.testing.assert_allclose(np.cov(blank.T), np.cov(draws.T), atol=0.5)


@pytest.mark.parametrize("name", sorted(set(GAUSSIANS) - SLOW - ROUGH))
def test_the_most_probable_value_of_a_gaussian_is_its_mean(name: str) -> None:
    model = GAUSSIANS[name]()
    found = np.asarray(model.impute([[np.nan, 2.0, -1.0]], "minimise", random_state=0))
    assert found[0, 0] == pytest.approx(5 / 3, rel=0.1)


# --- models that were fitted with y ----------------------------------------------------------

QUICK: dict[str, Any] = {
    "hidden_layer_sizes": (32,), "max_iter": 40, "learning_rate_init": 1e-2, "random_state": 0,
}  # fmt: skip

BY_CLASS: dict[str, Callable[[], Any]] = {
    "LinearGaussianBayesianNetwork": lambda: gs.LinearGaussianBayesianNetwork(),
    "SumProductNetwork": lambda: gs.SumProductNetwork(random_state=0),
    "KernelDensity": lambda: gs.KernelDensity(0.3),
    "AutoregressiveDensity": lambda: gs.AutoregressiveDensity(**QUICK),
    "MADE": lambda: gs.MADE(2, **QUICK),
    "NormalizingFlow": lambda: gs.NormalizingFlow(n_transforms=2, **{**QUICK, "max_iter": 15}),
    "VAE": lambda: gs.VAE(1, **QUICK),
    "DDPM": lambda: gs.DDPM(50, "cosine", **{**QUICK, "max_iter": 150}),
}


def two_classes(gap: float, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians of independent columns, on the diagonal."""
    y = np.repeat(["low", "high"], n // 2)
    rng = np.random.default_rng(0)
    return np.where(y == "low", -gap, gap)[:, None] + 0.5 * rng.normal(size=(n, 2)), y


@pytest.mark.filterwarnings("ignore:posterior collapse")
@pytest.mark.parametrize("name", sorted(BY_CLASS))
def test_y_that_is_not_given_follows_from_the_known_cells(name: str) -> None:
    X, y = two_classes(3.0)
    model = BY_CLASS[name]().fit(X, y)
    gaps = np.array([[np.nan, 3.0], [np.nan, -3.0]] * 20)
    for how in ("sample", "mean", "minimise"):
        filled = np.asarray(model.impute(gaps, how, random_state=0))[:, 0]
        assert (np.sign(filled) == np.sign(gaps[:, 1])).mean() > 0.9, how
        asked = np.asarray(model.impute(gaps[:1], how, y="high", random_state=0))
        assert asked[0, 0] > 0
    named = np.array(["high", "low"] * 20)
    for X_known in (gaps, gaps[:, ::-1]):
        assert (model.infer({"x": X_known}, "y") == named).all()
    assert (model.infer({"x": gaps}, "y", "sample", n=3, random_state=0) == named).all()


def test_classes_that_overlap_are_weighed() -> None:
    r"""E[x₁ | x₂] is the classes' means by :math:`p(y \mid x_2)`, to the last digits."""
    X, y = two_classes(0.5)
    model = gs.LinearGaussianBayesianNetwork([(1, 0)]).fit(X, y)
    at, parts = 0.2, []
    for name in ("high", "low"):
        rows = X[y == name]
        m, C = rows.mean(0), np.cov(rows.T, bias=True)
        density = math.exp(-0.5 * (at - m[1]) ** 2 / C[1, 1]) / math.sqrt(C[1, 1])
        parts.append((density, m[0] + C[0, 1] / C[1, 1] * (at - m[1])))
    expected = sum(p * mean for p, mean in parts) / sum(p for p, _ in parts)
    gaps = np.array([[np.nan, at]])
    assert model.impute(gaps)[0, 0] == pytest.approx(expected, rel=1e-6)
    drawn = model.impute(np.repeat(gaps, 4000, 0), "sample", random_state=0)[:, 0]
    assert drawn.mean() == pytest.approx(expected, abs=0.05)


def test_the_known_cells_of_a_network_that_rules_them_out() -> None:
    """A table by counting has zeros: −inf, and not a number that is none."""
    X, y = two_classes(3.0)
    model = gs.DiscreteBayesianNetwork(n_bins=8).fit(X, y)
    rows = np.array([[np.nan, 3.0], [3.0, 3.0], [np.nan, -3.0]])
    assert np.isneginf(model.score_samples(rows, "low")).tolist() == [True, True, False]
    assert np.isfinite(model.score_samples(rows)).all()
    assert (model.impute(rows, random_state=0)[:, 0] > 0).tolist() == [True, True, False]
