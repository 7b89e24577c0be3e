"""The triangle of three probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from groundstate.errors import ShapeError
from groundstate.report.simplex import CORNERS, barycentric, plot_simplex


def test_corners_centre_and_inside() -> None:
    assert np.allclose(barycentric(np.eye(3)), CORNERS)
    assert np.allclose(barycentric([[1 / 3] * 3]), CORNERS.mean(0))


def test_softmax_is_on_the_simplex_and_sigmoid_for_two() -> None:
    logits = 5 * torch.randn(
        100, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    p = torch.softmax(logits, 1)
    assert bool((p >= 0).all()) and torch.allclose(p.sum(1), torch.ones(100, dtype=p.dtype))
    barycentric(p.numpy())
    two = torch.softmax(logits[:, :2], 1)[:, 1]
    assert torch.allclose(two, torch.sigmoid(logits[:, 1] - logits[:, 0]), atol=1e-12)


def test_three_equal_areas_meet_in_the_middle() -> None:
    ax = Figure().add_subplot()
    plot_simplex(ax)
    areas = [np.asarray(patch.get_xy())[:-1] for patch in ax.patches]
    sizes = [
        abs(np.sum(a[:, 0] * np.roll(a[:, 1], -1) - np.roll(a[:, 0], -1) * a[:, 1])) / 2
        for a in areas
    ]
    assert sizes == pytest.approx([np.sqrt(3) / 12] * 3)
    assert all(np.isclose(a, CORNERS.mean(0)).all(1).any() for a in areas)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 30_000)
    assert np.bincount(p.argmax(1)) / 30_000 == pytest.approx([1 / 3] * 3, abs=0.01)


def test_points_take_the_colours_of_their_classes() -> None:
    ax = Figure().add_subplot()
    p = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    plot_simplex(ax, p, p.argmax(1), labels=("a", "b", "c"))
    assert sum(len(c.get_offsets()) for c in ax.collections) == 30
    assert [t.get_text() for t in ax.texts] == ["a", "b", "c"]


def test_errors() -> None:
    with pytest.raises(ShapeError, match=r"three classes \(n, 3\), got \(1, 2\)"):
        barycentric([[0.5, 0.5]])
    with pytest.raises(ValueError, match="use softmax of the logits first"):
        barycentric([[1.0, 2.0, 3.0]])
