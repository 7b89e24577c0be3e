"""DDPM: moments, conditions, guidance, paths, bounds, categories, missing cells."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import make_moons
from torch import Tensor, nn

from groundstate import DDPM
from groundstate.infer.sampling.diffusion import inpaint
from groundstate.math.diffusion import NoiseSchedule

SCHEDULE = NoiseSchedule()
MEAN, COV = np.array([1.0, 1, -1]), np.array([[2.0, 2, 0], [2, 3, 0], [0, 0, 1]])


class Exact(nn.Module):
    """The true noise of rows from N(0, C)."""

    def __init__(self, cov: Tensor) -> None:
        super().__init__()
        self.register_buffer("cov", cov)
        self.still = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        a, s = SCHEDULE.signal_noise(t, x[:, :, None])
        noisy = a * a * self.cov.to(x) + s * s * torch.eye(len(self.cov)).to(x)
        return s[:, 0] * torch.linalg.solve(noisy, x[:, :, None])[..., 0] + 0 * self.still


def exact_model(n: int = 4000) -> DDPM:
    """A fitted model whose denoiser is exact for N(MEAN, COV)."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(MEAN, COV, n)
    X = (X - X.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T, bias=True))).T
    X = X @ np.linalg.cholesky(COV).T + MEAN  # moments that are exact
    sd = np.sqrt(np.diag(COV))
    net = Exact(torch.from_numpy(COV / np.outer(sd, sd)))
    model = DDPM(network=net, max_iter=1, clip_denoised=False, random_state=0)
    return model.fit(X)


@pytest.fixture(scope="module")
def gaussian() -> DDPM:
    return exact_model()


@pytest.fixture(scope="module")
def moons() -> tuple[DDPM, np.ndarray]:
    X, y = make_moons(500, noise=0.05, random_state=0)
    model = DDPM(
        50, "cosine", max_iter=120, batch_size=250, learning_rate_init=4e-3, random_state=0
    )
    return model.fit(X, np.where(y == 0, "up", "down")), X


def mmd(a: np.ndarray, b: np.ndarray) -> float:
    def k(u: np.ndarray, v: np.ndarray) -> float:
        return float(np.exp(-((u[:, None] - v[None]) ** 2).sum(-1)).mean())

    return k(a, a) + k(b, b) - 2 * k(a, b)


def test_moments_of_an_exact_denoiser(gaussian):
    drawn = gaussian.sample(4000, sampler="ddim", sample_steps=100, random_state=0)
    np.testing.assert_allclose(drawn.mean(0), MEAN, atol=4 * np.sqrt(3 / 4000))
    np.testing.assert_allclose(np.cov(drawn.T), COV, atol=0.25)
    few = gaussian.sample(4000, sampler="dpmpp_2m", sample_steps=20, random_state=0)
    np.testing.assert_allclose(np.cov(few.T), COV, atol=0.25)


def test_bound_of_an_exact_denoiser(gaussian):
    X = np.random.default_rng(1).multivariate_normal(MEAN, COV, 20)
    gap = X - MEAN
    true = -0.5 * (gap @ np.linalg.inv(COV) * gap).sum(1)
    true -= 0.5 * np.log(np.linalg.det(2 * np.pi * COV))
    assert gaussian.log_prob_kind_ == "bound"
    scores = gaussian.score_samples(X)
    assert (scores < true).all() and (true - scores).mean() < 0.35
    found = gaussian.elbo(X)
    # in the units of the rows the coded bound loses the logarithm of the scales
    np.testing.assert_allclose(found.value - np.log(np.diag(COV)).sum() / 2, scores, atol=1e-3)
    np.testing.assert_allclose(found.bits_per_dim, -found.value / (3 * np.log(2)))
    assert found.steps.shape == (999, 20)


def test_missing_cells_of_a_gaussian(gaussian):
    # x1 given x2 = 2: mean 1.666667, variance .666667
    x = np.tile([np.nan, 2.0, np.nan], (2000, 1))
    filled = gaussian.impute(x, "sample", random_state=0)
    np.testing.assert_allclose(filled[:, 0].mean(), 1.666667, rtol=0.1)
    np.testing.assert_allclose(filled[:, 0].var(), 0.666667, rtol=0.1)
    np.testing.assert_array_equal(filled[:, 1], 2.0)
    mode = gaussian.impute(x[:2], "minimise", random_state=0)
    np.testing.assert_allclose(mode[:, 0], 1.666667, rtol=0.1)
    with pytest.raises(ValueError, match="jumps"):
        inpaint(lambda x, t: x, torch.ones(1, 1), torch.ones(1, 1).bool(), SCHEDULE, jumps=0)


def test_noise_is_a_code(gaussian):
    X = np.random.default_rng(2).multivariate_normal(MEAN, COV, 30)
    Z = gaussian.transform(X)
    np.testing.assert_allclose(gaussian.inverse_transform(Z), X, atol=1e-3)
    way = gaussian.interpolate(X[0], X[1], n=5, mode="slerp")
    np.testing.assert_allclose(way[[0, -1]], X[:2], atol=1e-2)


def test_moons_are_better_than_a_gaussian(moons):
    model, X = moons
    drawn = model.sample(500, random_state=1)
    rng = np.random.default_rng(0)
    normal = rng.multivariate_normal(X.mean(0), np.cov(X.T), 500)
    assert mmd(X, drawn) <= 0.25 * mmd(X, normal)


def test_labels_and_guidance(moons):
    model = moons[0]
    for label, side in (("up", 1), ("down", -1)):
        drawn = model.sample(200, y=label, random_state=0)
        assert side * (drawn[:, 1].mean() - 0.25) > 0.2
    both = [
        model.sample(300, y="up", guidance_scale=w, sampler="ddim", random_state=0)
        for w in (0.0, 1.0, 4.0)
    ]
    assert both[0][:, 1].mean() < both[1][:, 1].mean()
    assert not np.array_equal(both[1], both[2])
    narrow = model.sample(
        50,
        y="up",
        guidance_scale=4.0,
        guidance_interval=(10, 30),
        guidance_rescale=0.5,
        random_state=0,
    )
    assert np.isfinite(narrow).all()


def test_paths_start_at_noise_and_end_at_rows(moons):
    rows, path = moons[0].sample(20, return_path=True, random_state=0)
    assert path.shape == (51, 20, 2)
    np.testing.assert_array_equal(path[-1], rows)
    np.testing.assert_array_equal(rows, moons[0].sample(20, random_state=0))
    same, noise, _ = moons[0].sample(20, return_latent=True, return_path=True, random_state=0)
    np.testing.assert_array_equal(same, rows)
    assert noise.shape == (20, 2)


def test_temperature_narrows(moons):
    cold = moons[0].sample(300, y="up", T=0.2, random_state=0)
    warm = moons[0].sample(300, y="up", random_state=0)
    assert cold.var(0).sum() < warm.var(0).sum()


def test_tables_with_categories():
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 600, p=[0.2, 0.5, 0.3])
    size = (kind == "a") * 4.0 + rng.normal(size=600)
    table = pd.DataFrame({"kind": kind, "size": size})
    model = DDPM(50, "cosine", max_iter=80, batch_size=200, learning_rate_init=4e-3, random_state=0)
    drawn = model.fit(table).sample(600, random_state=0)
    share = drawn["kind"].value_counts(normalize=True)
    for name, p in (("a", 0.2), ("b", 0.5), ("c", 0.3)):
        assert abs(share[name] - p) < 0.1
    means = drawn.groupby("kind")["size"].mean()
    assert means["a"] > 3 and abs(means["b"]) < 0.7 and abs(means["c"]) < 0.7
    # categories have probabilities: of the three, the right one is more likely
    tall = pd.DataFrame({"kind": ["a", "b"], "size": [4.0, 4.0]})
    scores = model.score_samples(tall)
    assert scores[0] > scores[1] + 1
    gaps = pd.DataFrame({"kind": [None] * 40, "size": [5.0] * 40})
    assert (model.impute(gaps, "sample", random_state=0)["kind"] == "a").mean() > 0.8


def test_learned_variances_and_other_predictions():
    X = np.random.default_rng(0).normal([1.0, -1.0], [1.0, 0.2], (300, 2))
    for settings in ({"variance": "learned"}, {"prediction_type": "v_prediction"},
                     {"prediction_type": "sample", "weighting": "min_snr"}):  # fmt: skip
        model = DDPM(20, "cosine", hidden_layer_sizes=(32,), max_iter=60, learning_rate_init=1e-2,
                     random_state=0, **settings).fit(X)  # fmt: skip
        drawn = model.sample(300, random_state=0)
        np.testing.assert_allclose(drawn.mean(0), [1, -1], atol=0.35)
        assert np.isfinite(model.score(X))


def test_images_take_a_unet():
    X = np.zeros((24, 8, 8))
    X[:12, :, :4] = 1.0
    X[12:, :4] = 1.0
    model = DDPM(
        20, "cosine", network_params={"base": 8}, scale="minmax", max_iter=2, random_state=0
    )
    drawn = model.fit(X).sample(3, random_state=0)
    assert drawn.shape == (3, 8, 8) and drawn.min() >= -1e-6 and drawn.max() <= 1 + 1e-6
    assert type(model.energy_.net).__name__ == "UNetDenoiser"
    other = DDPM(20, "cosine", network="dit", max_iter=1, random_state=0,
                 network_params={"dim": 16, "layers": 1, "heads": 2})  # fmt: skip
    assert other.fit(X[:, None]).sample(2, random_state=0).shape == (2, 1, 8, 8)


def test_too_few_levels_are_named():
    with pytest.warns(UserWarning, match="keeps a share"):
        DDPM(20, max_iter=1).fit(np.random.default_rng(0).normal(size=(20, 2)))


def test_bad_settings_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="network must be one of"):
        DDPM(5, "cosine", network="cnn").fit(X)
    model = DDPM(5, "cosine", hidden_layer_sizes=(4,), max_iter=1).fit(X)
    with pytest.raises(ValueError, match="sampler must be one of"):
        model.sample(1, sampler="euler")
    with pytest.raises(ValueError, match="1 to 5"):
        model.sample(1, sample_steps=9)
