"""Toy distributions: exact log p integrates to one and fits the draws; pictures show their factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.datasets import make_moons

from groundstate import data

GRID: dict[str, tuple[float, dict[str, Any]]] = {
    "eight_gaussians": (3.0, {}),
    "two_gaussians": (10.0, {}),
    "checkerboard": (2.0, {}),
    "double_well": (3.0, {}),
    "moons": (2.5, {"noise": 0.1}),
}


@pytest.mark.parametrize("name", GRID)
def test_densities_integrate_to_one(name: str) -> None:
    end, options = GRID[name]
    cells = 240
    at = -end + 2 * end * (np.arange(cells) + 0.5) / cells
    rows = np.stack(np.meshgrid(at, at), -1).reshape(-1, 2)
    mass = np.exp(data.toy_log_prob(name, rows, **options)).sum() * (2 * end / cells) ** 2
    assert mass == pytest.approx(1, abs=2e-4)


@pytest.mark.parametrize("name", ["eight_gaussians", "two_gaussians", "double_well", "moons"])
def test_draws_have_the_entropy_of_the_density(name: str) -> None:
    """The mean of −log p over draws is the entropy, found on a grid."""
    end, options = GRID[name]
    cells = 240
    at = -end + 2 * end * (np.arange(cells) + 0.5) / cells
    rows = np.stack(np.meshgrid(at, at), -1).reshape(-1, 2)
    log_p = data.toy_log_prob(name, rows, **options)
    area = (2 * end / cells) ** 2
    entropy = -(np.exp(log_p) * np.where(np.isfinite(log_p), log_p, 0)).sum() * area
    if name == "moons":
        X = make_moons(20_000, noise=0.1, random_state=0)[0]
    else:
        made = getattr(data, f"make_{name}")(20_000, random_state=0)
        X = made[0] if isinstance(made, tuple) else made
    each = data.toy_log_prob(name, X, **options)
    assert -each.mean() == pytest.approx(entropy, abs=4 * each.std() / np.sqrt(len(each)))


def test_numbers_of_the_specification() -> None:
    X = data.make_bars_and_stripes(3)
    assert X.shape == (14, 9) and len(np.unique(X, axis=0)) == 14
    assert data.toy_log_prob("bars_and_stripes", X).mean() == pytest.approx(-2.639057, abs=5e-7)
    every = np.array(np.meshgrid(*[[0.0, 1.0]] * 9)).reshape(9, -1).T
    assert np.exp(data.toy_log_prob("bars_and_stripes", every)).sum() == pytest.approx(1)
    ring, y = data.make_eight_gaussians(40_000, random_state=0)
    centres = np.stack([ring[y == k].mean(0) for k in range(8)])
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 2, atol=0.01)
    assert (ring - centres[y]).std() == pytest.approx(0.1, rel=0.02)
    two, y = data.make_two_gaussians(40_000, random_state=0)
    np.testing.assert_allclose(two[y == 0].mean(0), -5, atol=0.06)
    assert (y == 0).mean() == pytest.approx(0.2, abs=0.008)
    well = data.make_double_well(40_000, random_state=0)
    top = quad(lambda x: x * x * np.exp(-2 * (x * x - 1) ** 2), -9, 9)[0]
    exact = top / quad(lambda x: np.exp(-2 * (x * x - 1) ** 2), -9, 9)[0]
    assert exact == pytest.approx(0.852, abs=5e-4)
    np.testing.assert_allclose(well.var(0), [exact, 0.25], atol=0.01)
    disc = data.make_disc(40_000, random_state=0)
    np.testing.assert_allclose(np.cov(disc.T)[[0, 2], [0, 2]], 0.25, atol=0.006)


@pytest.mark.parametrize(
    "name",
    ["bars_and_stripes", "checkerboard", "disc", "double_well", "eight_gaussians", "pinwheel",
     "two_gaussians", "captions", "edge_pairs", "factor_shapes"],
)  # fmt: skip
def test_same_seed_same_rows(name: str) -> None:
    make = getattr(data, f"make_{name}")
    n = {"n_samples": 30}

    def first(seed: int) -> np.ndarray:
        made = make(**n, random_state=seed)
        return np.asarray(made[0] if isinstance(made, tuple) else made)

    np.testing.assert_array_equal(first(3), first(3))
    assert not np.array_equal(first(3), first(4))
    with pytest.raises(ValueError, match="n_samples must be at least 1, got 0"):
        make(n_samples=0)


def test_pictures_show_their_factors() -> None:
    images, factors = data.make_factor_shapes(400, 20, random_state=0)
    np.testing.assert_array_equal(images, data.draw_factors(factors, 20))
    assert images.min() >= 0 and images.max() <= 1
    mass = images.sum((1, 2))
    rows = (images * (np.arange(20) + 0.5)[:, None]).sum((1, 2)) / mass
    columns = (images * (np.arange(20) + 0.5)).sum((1, 2)) / mass
    np.testing.assert_allclose(rows, 10 + 4.5 * factors[:, 0], atol=0.05)
    np.testing.assert_allclose(columns, 10 + 4.5 * factors[:, 1], atol=0.05)
    area = np.pi * 0.5 * (5 * factors[:, 2]) ** 2
    np.testing.assert_allclose(mass, area, rtol=0.1)
    border = np.concatenate([images[:, [0, -1]].ravel(), images[:, :, [0, -1]].ravel()])
    assert border.max() < 0.5  # the shape stays inside


def test_captions_and_pairs() -> None:
    images, captions, factors = data.make_captions(200, random_state=0)
    colours = list(data.COLOURS)
    for i in range(20):
        colour, shape = captions[i].split()[1:]
        assert (colours[factors[i, 0]], data.SHAPES[factors[i, 1]]) == (colour, shape)
        assert images[i].sum((1, 2)).argmax() == colours.index(colour)
    images, captions, factors = data.make_captions(60, colours=("pink", "cyan"), random_state=0)
    assert set(factors[:, 0].tolist()) == {0, 1}
    assert {c.split()[1] for c in captions} == {"pink", "cyan"}
    pink = images[factors[:, 0] == 0].sum((0, 2, 3))
    np.testing.assert_allclose(pink / pink.sum(), np.array([1.0, 0.3, 0.9]) / 2.2, rtol=1e-4)
    with pytest.raises(ValueError, match="cyan, white, grey, got \\['mauve'\\]"):
        data.make_captions(5, colours=["mauve"])
    a, b, y = data.make_edge_pairs(200, random_state=0)
    assert set(y.tolist()) == {0, 1, 2}
    edge = a > 0.9
    assert (b[edge] > 0.3).all()  # an outline lies on the rim of what it encloses
    assert (a[b == 0] < 0.51).all()


def test_errors_name_the_value() -> None:
    with pytest.raises(ValueError, match="no known density of 'spiral'; there is one of eight"):
        data.toy_log_prob("spiral", [[0.0, 0.0]])
    with pytest.raises(ValueError, match=r"rows \(n, d\), got shape \(2,\)"):
        data.toy_log_prob("double_well", [0.0, 0.0])
    with pytest.raises(ValueError, match="no density; use noise > 0"):
        data.toy_log_prob("moons", [[0.0, 0.0]], noise=0.0)
    with pytest.raises(ValueError, match="at least 8 x 8 pixels, got side=4"):
        data.make_factor_shapes(5, 4)
    with pytest.raises(ValueError, match="probability"):
        data.make_two_gaussians(5, weight=2.0)
