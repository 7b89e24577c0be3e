"""What a code allows: encode, decode, walk between rows, look around."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import groundstate
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.geometry.interpolate import lerp, slerp

QUICK = {"hidden_layer_sizes": (16,), "max_iter": 30, "learning_rate_init": 1e-2, "random_state": 0}


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, (300, 2))
    return np.column_stack([t, t[:, :1] ** 2, t[:, 1:] + 0.01 * rng.normal(size=(300, 1))])


@pytest.fixture(scope="module")
def model(rows: np.ndarray) -> groundstate.VAE:
    return groundstate.VAE(2, **QUICK).fit(rows)


def test_reconstruction_is_decoding_the_code(model: groundstate.VAE, rows: np.ndarray) -> None:
    z = model.transform(rows)
    assert z.shape == (300, 2)
    np.testing.assert_array_equal(model.inverse_transform(z), model.reconstruct(rows))
    np.testing.assert_array_equal(model.encode(rows), z)
    np.testing.assert_array_equal(model.decode(z), model.reconstruct(rows))
    with pytest.raises(ShapeError, match=r"codes have shape \(n, 2\)"):
        model.inverse_transform(np.zeros((3, 5)))


@pytest.mark.parametrize("mode", ["linear", "slerp", "geodesic"])
def test_ways_end_at_reconstructions(model: groundstate.VAE, rows: np.ndarray, mode: str) -> None:
    way = model.interpolate(rows[0], rows[1], n=5, mode=mode)
    assert way.shape == (5, 4)
    ends = model.reconstruct(rows[:2])
    np.testing.assert_allclose(way[[0, -1]], ends, atol=1e-6)


def test_a_geodesic_is_no_longer_than_the_line(model: groundstate.VAE, rows: np.ndarray) -> None:
    z = torch.from_numpy(model.transform(rows[:2]))
    metric = model.decoder_metric()
    line = metric.length(lerp(z[0], z[1], torch.linspace(0, 1, 41, dtype=z.dtype)))
    short = metric.geodesic(z[0], z[1], 41).length
    assert float(short) <= float(line.detach()) * (1 + 1e-6)


def test_arcs_keep_the_norm() -> None:
    a, b = torch.tensor([3.0, 4.0, 0.0]), torch.tensor([0.0, 0.0, 5.0])
    way = slerp(a, b, torch.linspace(0, 1, 9))
    np.testing.assert_allclose(way.norm(dim=1), 5.0, rtol=1e-6)
    np.testing.assert_allclose(slerp(a, 2 * a, torch.tensor([0.5]))[0], 1.5 * a)


def test_grids_and_single_coordinates(model: groundstate.VAE, rows: np.ndarray) -> None:
    grid = model.latent_grid(3)
    assert grid.shape == (3, 3, 4)
    from scipy.stats import norm

    corner = np.array([[norm.ppf(1 / 6), norm.ppf(5 / 6)]])  # left, top
    np.testing.assert_allclose(grid[0, 0], model.inverse_transform(corner)[0], atol=1e-6)
    moved = model.traverse(rows[0], 1, [-1.0, 0.0, 1.0])
    z = model.transform(rows[:1])
    z[0, 1] = 0.0
    np.testing.assert_allclose(moved[1], model.inverse_transform(z)[0], atol=1e-6)
    with pytest.raises(ValueError, match="coordinates 0 to 1"):
        model.traverse(rows[0], 2, [0.0])
    with pytest.raises(ValueError, match="at least 2"):
        model.interpolate(rows[0], rows[1], n=1)
    with pytest.raises(ValueError, match="mode must be"):
        model.interpolate(rows[0], rows[1], mode="arc")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="codes of 2 numbers"):
        groundstate.VAE(3, **(QUICK | {"max_iter": 1})).fit(rows).latent_grid()


def test_it_moves_to_a_device(model: groundstate.VAE, rows: np.ndarray) -> None:
    before = model.score_samples(rows[:5])
    np.testing.assert_array_equal(model.to("cpu").score_samples(rows[:5]), before)


# --- models that were fitted with y ----------------------------------------------------------


def classes(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Three columns of two classes that are far apart."""
    y = np.repeat(["low", "high"], n // 2)
    rng = np.random.default_rng(0)
    c = np.where(y == "low", -3.0, 3.0)
    return np.c_[c + 0.5 * rng.normal(size=n), c + 0.5 * rng.normal(size=n), rng.normal(size=n)], y


CONDITIONAL = {
    "VAE": lambda: groundstate.VAE(1, **QUICK),
    "ConditionalVAE": lambda: groundstate.ConditionalVAE(1, **QUICK),
    "Autoencoder": lambda: groundstate.Autoencoder(1, **QUICK),
    "NormalizingFlow": lambda: groundstate.NormalizingFlow(n_transforms=2, **QUICK | {"max_iter": 8}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:posterior collapse")
@pytest.mark.parametrize("name", CONDITIONAL)
def test_without_y_rows_are_of_their_most_probable_class(name: str) -> None:
    X, y = classes()
    model = CONDITIONAL[name]().fit(X, y)
    np.testing.assert_array_equal(model.transform(X), model.transform(X, y))
    np.testing.assert_array_equal(model.reconstruct(X), model.reconstruct(X, y))
    ends = model.reconstruct(X[[0, -1]])
    for mode in ("linear", "geodesic") if name == "VAE" else ("linear",):
        way = model.interpolate(X[0], X[-1], n=3, mode=mode)  # type: ignore[attr-defined]
        np.testing.assert_allclose(way[[0, -1]], ends, atol=1e-5)
    z = model.transform(X[:4])
    each = [model.inverse_transform(z, k) for k in ("high", "low")]  # as frequent
    np.testing.assert_allclose(model.inverse_transform(z), np.mean(each, 0), atol=1e-5)
    moved = model.traverse(X[0], 0, z[0, :1])
    np.testing.assert_allclose(moved, ends[:1], atol=1e-5)
    with pytest.raises(ValueError, match="decoder_metric needs y"):
        model.decoder_metric()


@pytest.mark.filterwarnings("ignore:posterior collapse", "ignore:the importance weights")
def test_the_bound_of_rows_without_y_sums_over_y() -> None:
    X, y = classes()
    model = groundstate.VAE(1, **QUICK).fit(X, y)
    both = np.stack([model.elbo(X, k) for k in ("low", "high")])
    np.testing.assert_allclose(model.elbo(X), np.logaddexp(*both) - np.log(2), atol=1e-4)
    assert model.elbo(X).mean() <= model.score(X) + 0.01
