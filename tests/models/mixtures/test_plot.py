"""plot_mixture: curves that add up, ellipses at one and two standard deviations, colours of rows."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Ellipse
from sklearn.datasets import load_iris, make_blobs

from groundstate import BayesianGaussianMixture, GaussianMixture, MixtureModel
from groundstate.models.mixtures.plot import COLOURS, plot_mixture

LINE = np.random.default_rng(0).normal([[-3.0], [2.0]], 1.0, (2, 100)).reshape(-1, 1)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "identity"])
def test_components_add_up_to_the_total(kind: str) -> None:
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(LINE)
    ax = plot_mixture(model, LINE)
    *parts, total = ax.lines
    assert total.get_label() == "total" and len(parts) == 3
    added = sum(part.get_ydata() for part in parts)
    np.testing.assert_allclose(total.get_ydata(), added, rtol=1e-12)
    x = np.asarray(total.get_xdata())
    np.testing.assert_allclose(total.get_ydata(), np.exp(model.score_samples(x[:, None])))
    assert np.trapezoid(total.get_ydata(), x) == pytest.approx(1.0, abs=0.05)


def test_two_columns() -> None:
    X, _ = make_blobs(200, centers=[[0, 0], [6, 1]], random_state=0)
    X = X @ np.array([[1.0, 0.5], [0.0, 0.7]])
    model = GaussianMixture(2, random_state=0).fit(X)
    ax = plot_mixture(model, X)
    rings = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert len(rings) == 4
    for z in range(2):
        for width, ring in zip((1, 2), rings[2 * z : 2 * z + 2], strict=True):
            np.testing.assert_allclose(ring.center, model.means_[z])
            axes = np.array([ring.width, ring.height]) / (2 * width)
            values = np.linalg.eigvalsh(model.covariances_[z])
            np.testing.assert_allclose(axes**2, values[::-1])
            turn = np.radians(ring.angle)
            major = np.array([np.cos(turn), np.sin(turn)])
            assert major @ model.covariances_[z] @ major == pytest.approx(values[1])
    colours = ax.collections[-1].get_facecolor()
    from matplotlib.colors import to_rgb

    mixed = model.predict_proba(X) @ np.array([to_rgb(c) for c in COLOURS[:2]])
    np.testing.assert_allclose(colours[:, :3], mixed)


def test_columns_of_many_are_drawn_by_the_marginal() -> None:
    X = load_iris(as_frame=True).data
    model = GaussianMixture(2, random_state=0).fit(X)
    ax = plot_mixture(model, X, columns=[2])
    total = ax.lines[-1]
    x = np.asarray(total.get_xdata())
    expected = sum(
        w * np.exp(-0.5 * (x - m[2]) ** 2 / c[2, 2]) / np.sqrt(2 * np.pi * c[2, 2])
        for w, m, c in zip(model.weights_, model.means_, model.covariances_, strict=True)
    )
    np.testing.assert_allclose(total.get_ydata(), expected)
    assert ax.get_xlabel() == "petal length (cm)"
    assert plot_mixture(BayesianGaussianMixture(2, max_iter=500).fit(X), columns=(0, 3)).patches
    for columns in (None, (0, 4), (1, 1), (0, 1, 2)):
        with pytest.raises(ValueError, match="draws one or two of the 4 columns"):
            plot_mixture(model, columns=columns)


def test_other_families_are_refused() -> None:
    model = MixtureModel("poisson", 2, random_state=0).fit(np.array([[1.0], [2.0], [9.0], [8.0]]))
    with pytest.raises(ValueError, match="mixtures of Gaussians, got MixtureModel"):
        plot_mixture(model)
