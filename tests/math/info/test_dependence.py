"""Dependence by random waves: the forms it sees, its level under independence, weights and ranks."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.errors import ShapeError
from groundstate.math.info import randomised_dependence


@pytest.mark.parametrize(
    ("form", "least"), [("line", 0.9), ("parabola", 0.9), ("circle", 0.5), ("wave", 0.35)]
)
def test_any_form_is_seen(form: str, least: float) -> None:
    """Slow waves of the ranks see little of a fast one, and still that it is there."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 500)
    x, y = {
        "line": (t, t), "parabola": (t, t**2), "wave": (t, np.sin(8 * t)),
        "circle": (np.cos(np.pi * t), np.sin(np.pi * t)),
    }[form]  # fmt: skip
    found = randomised_dependence(x, y + 0.1 * rng.normal(size=500))
    assert found.coefficient > least and found.p_value < 1e-6


def test_the_level_under_independence() -> None:
    rng = np.random.default_rng(0)
    p = [randomised_dependence(*rng.normal(size=(2, 200))).p_value for _ in range(400)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=3 * (0.05 * 0.95 / 400) ** 0.5)


def test_rising_maps_weights_and_order_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = x**2 + rng.normal(size=60)
    one = randomised_dependence(x, y)
    assert randomised_dependence(np.exp(x), y**3) == pytest.approx(one, rel=1e-6)
    w = rng.integers(0, 4, 60)
    rows = rng.permutation(np.repeat(np.arange(60), w))
    weighted, repeated = randomised_dependence(x, y, w), randomised_dependence(x[rows], y[rows])
    assert weighted == pytest.approx(repeated, rel=1e-6)


def test_categories_and_edges() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 300)
    hot = np.eye(3)[kind]
    assert randomised_dependence(hot, kind + 0.3 * rng.normal(size=300)).p_value < 1e-9
    assert randomised_dependence(hot, rng.normal(size=300)).p_value > 1e-3
    assert randomised_dependence(np.ones(50), rng.normal(size=50)) == (0.0, 1.0)
    with pytest.raises(ShapeError, match="one row each"):
        randomised_dependence(np.ones(3), np.ones(4))
