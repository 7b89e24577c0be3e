"""Pictures of mixtures: components, their sum, and rows by responsibility."""

from __future__ import annotations

import numpy as np
from common import figure
from matplotlib.figure import Figure
from sklearn.datasets import make_blobs

from groundstate import GaussianMixture
from groundstate.models.mixtures.plot import plot_mixture


def mixtures() -> Figure:
    """Components and their sum over one column and over two."""
    fig, (left, right) = figure(2)
    line = np.random.default_rng(0).normal([[-2.5], [0.5], [3.5]], [[0.7], [1.2], [0.5]], (3, 60))
    column = line.reshape(-1, 1)
    plot_mixture(GaussianMixture(3, random_state=0).fit(column), column, ax=left)
    left.legend(fontsize=7)
    left.set_title("components add up to the total")
    rows, _ = make_blobs(150, centers=[[0, 0], [4, 1], [1, 4]], cluster_std=0.9, random_state=0)
    rows = rows @ np.array([[1.0, 0.7], [0.0, 0.6]])
    plot_mixture(GaussianMixture(3, random_state=0).fit(rows), rows, ax=right)
    right.set_title("one and two standard deviations")
    return fig


PICTURES = {"family-mixtures": mixtures}
