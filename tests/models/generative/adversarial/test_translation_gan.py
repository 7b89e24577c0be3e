"""TranslationGAN: shapes, pairs and what a discriminator of pairs sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groundstate
from groundstate import TranslationGAN
from groundstate.errors import ShapeError

QUICK: dict[str, Any] = {
    "base": 4, "depth": 1, "d_base": 4, "d_depth": 1, "batch_size": 20, "max_iter": 8,
    "learning_rate_init": 2e-3, "random_state": 0,
}  # fmt: skip


def pairs(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    A = np.random.default_rng(0).random((n, 8, 8)).astype("float32")
    return A, 1 - A


def test_images_from_images(tmp_path: Path) -> None:
    A, B = pairs()
    model = TranslationGAN(**QUICK).fit(B, A)
    painted = model.translate(A)
    assert painted.shape == B.shape and model.given_shape_ == (1, 8, 8)
    shuffled = model.translate(A[::-1])
    assert abs(painted - B).mean() < abs(shuffled - B).mean()
    np.testing.assert_array_equal(model.sample(y=A), painted)
    back = groundstate.load(model.save(tmp_path / "model.gs"))
    np.testing.assert_array_equal(back.translate(A), painted)
    assert model.discriminator_score(B, A).shape == (60,)


def test_colours_and_noise() -> None:
    A, B = pairs(20)
    colours = np.repeat(B[:, None], 3, 1)
    model = TranslationGAN(2, **QUICK).fit(colours, A)
    one, two = (model.translate(A, random_state=s) for s in (0, 1))
    assert one.shape == (20, 3, 8, 8) and not np.array_equal(one, two)


def test_a_discriminator_of_b_alone_does_not_see_the_pair() -> None:
    A, B = pairs()
    alone = TranslationGAN(**QUICK, conditional_d=False).fit(B, A)
    np.testing.assert_allclose(
        alone.discriminator_score(B, A), alone.discriminator_score(B, A[::-1]), rtol=1e-6
    )


def test_what_does_not_fit_is_named() -> None:
    A, B = pairs(20)
    with pytest.raises(ValueError, match="requires y"):
        TranslationGAN().fit(B)
    with pytest.raises(ShapeError, match="keeps the size"):
        TranslationGAN(**QUICK).fit(B, A[:, :4])
    with pytest.raises(ShapeError, match="images"):
        TranslationGAN(**QUICK).fit(B.reshape(20, -1), A)
    model = TranslationGAN(**QUICK).fit(B, A)
    with pytest.raises(ShapeError, match="in fit"):
        model.translate(A[:, :4, :4])
