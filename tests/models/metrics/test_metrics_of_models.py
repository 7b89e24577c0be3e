"""Metrics in models: of a decoder, of neighbours, of a density, and as a picture."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from groundstate import Autoencoder, KNeighborsClassifier, LocallyAdaptiveNormal, LocalMetric
from groundstate.math.distances import ConstantMetric
from groundstate.models.metrics.plot import plot_metric


class Polar(nn.Module):
    """(r, θ) to the plane."""

    def __init__(self) -> None:
        super().__init__()
        self.still = nn.Parameter(torch.zeros(1))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        r, t = z[:, :1] + 0 * self.still, z[:, 1:]
        return torch.cat([r * t.cos(), r * t.sin()], 1)


class Back(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x.norm(dim=1), torch.atan2(x[:, 1], x[:, 0])], 1)


@pytest.mark.filterwarnings("ignore:.*code")
def test_the_metric_of_a_decoder_makes_walks_straight_in_the_rows() -> None:
    X = np.random.default_rng(0).uniform(0.5, 2, (40, 2))
    model = Autoencoder(
        2, network=(Back(), Polar()), scale=None, max_iter=1, learning_rate_init=1e-12,
        random_state=0, device=None,
    ).fit(X)  # fmt: skip
    M = model.decoder_metric().tensor(torch.tensor([[2.0, 0.3]]))[0]
    torch.testing.assert_close(M, torch.diag(torch.tensor([1.0, 4.0])))
    a, b = np.array([2.0, 0.0]), np.array([0.0, 2.0])
    arc = model.interpolate(a, b, 9)
    chord = model.interpolate(a, b, 9, mode="geodesic")
    np.testing.assert_allclose(np.linalg.norm(arc, axis=1), 2.0, atol=1e-4)
    np.testing.assert_allclose(chord.sum(1), 2.0, atol=0.02)  # the line from a to b
    steps = np.linalg.norm(np.diff(chord, axis=0), axis=1).sum()
    assert steps == pytest.approx(np.sqrt(8), rel=0.01)


def test_neighbours_along_the_data_are_of_the_same_arm() -> None:
    """Two parallel arms: a row of one is nearest to a row of the other by straight lines."""
    t = np.linspace(0, 4, 41)
    arms = np.concatenate([np.column_stack([t, np.full(41, h)]) for h in (0.0, 1.5)])
    metric = LocalMetric(sigma=0.15, rho=1e-3).fit(arms)
    train, y = np.array([[0.0, 0.0], [2.0, 1.5]]), np.array(["low", "high"])
    new = np.array([[2.0, 0.0]])
    assert KNeighborsClassifier(1).fit(train, y).predict(new)[0] == "high"
    own = KNeighborsClassifier(1, metric=lambda a, b: float(metric.distance(a, b, 33)))
    assert own.fit(train, y).predict(new)[0] == "low"


def test_a_density_on_a_metric_answers_as_a_generator() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2)) * [2.0, 1.0]
    model = LocallyAdaptiveNormal(metric=ConstantMetric(np.eye(2)), n_nodes=100, max_iter=2).fit(X)
    drawn = model.sample(400, random_state=0)
    drawn = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)
    np.testing.assert_allclose(drawn.std(0), X.std(0), rtol=0.15)
    np.testing.assert_allclose(model.score_samples(X).mean(), model.score(X), rtol=1e-6)


def test_ellipses_are_reciprocal_to_the_metric() -> None:
    rows = [[0.0, 0.0], [1.0, 1.0]]
    ax = plot_metric(ConstantMetric([[3.0, 1.0], [1.0, 2.0]]), rows, places=3, step=0.1)
    one = ax.patches[0]
    values, vectors = np.linalg.eigh([[3.0, 1.0], [1.0, 2.0]])
    assert len(ax.patches) == 9
    assert (one.width, one.height) == pytest.approx(tuple(0.2 / np.sqrt(values)))
    along = np.array([np.cos(np.radians(one.angle)), np.sin(np.radians(one.angle))])
    assert abs(along @ vectors[:, 0]) == pytest.approx(1.0)  # long where the metric is small
    with pytest.raises(ValueError, match=r"got \(1, 2\)"):
        plot_metric(ConstantMetric(np.eye(2)), [[0.0, 0.0]])
