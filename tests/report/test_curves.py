"""Pictures of predictions and losses: what they show is what was given."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate import optim
from groundstate.errors import DataError
from groundstate.report.curves import (
    plot_band,
    plot_landscape,
    plot_probabilities,
)


def test_band_is_two_standard_deviations() -> None:
    x = np.array([2.0, 0.0, 1.0])
    (ax,) = plot_band(x, 3 * x, 1 + x, y=x).axes
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == -2.0 and band[:, 1].max() == pytest.approx(6 + 6)  # 0 − 2·1, 6 + 2·3
    assert ax.lines[0].get_xdata().tolist() == [0, 1, 2]  # type: ignore[union-attr]


def test_probability_curves() -> None:
    x = np.linspace(-3, 3, 31)
    s = np.column_stack([x, -x, 0 * x])
    p = np.exp(s) / np.exp(s).sum(1, keepdims=True)
    left, right = plot_probabilities(x, p, logits=s, labels=("a", "b", "c")).axes
    total = sum(np.asarray(line.get_ydata()) for line in right.lines)
    assert total == pytest.approx(np.ones(31))
    assert len(left.lines) == 3
    (only,) = plot_probabilities(x, torch.sigmoid(torch.as_tensor(x))).axes
    assert np.asarray(only.lines[1].get_ydata()) == pytest.approx(1 / (1 + np.exp(-x)))
    with pytest.raises(DataError, match="every row must sum to 1"):
        plot_probabilities(x, np.ones((31, 3)))


def test_landscape_pictures() -> None:
    def f(x: torch.Tensor, c: float = 0.0) -> torch.Tensor:
        return ((x[0] - c) ** 2 - 1) ** 2 + x[1] ** 2

    plane = optim.landscape(
        f, torch.zeros(2), directions=(0, 1), extent=1.5, n=31, batches=[(0.1,), (-0.1,)],
        path=[torch.tensor([1.2, 0.6]), torch.tensor([1.0, 0.1])],
    )  # fmt: skip
    flat, solid = plot_landscape(plane), plot_landscape(plane, "surface")
    path, minima, saddles = flat.axes[0].lines
    assert len(np.atleast_1d(path.get_xdata())) == 2
    assert sorted(np.round(minima.get_xdata(), 6).tolist()) == [-1, 1]
    assert np.round(saddles.get_xdata(), 6).tolist() == [0]
    assert solid.axes[0].name == "3d"
    with pytest.raises(ValueError, match="kind must be 'contour' or 'surface'"):
        plot_landscape(plane, "heat")  # type: ignore[arg-type]
