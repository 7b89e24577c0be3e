"""Pictures of the generative classifiers."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure, grid, landscape, regions, scatter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_blobs

from groundstate import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    QuadraticDiscriminantAnalysis,
)

rng = np.random.default_rng(0)
X, y = make_blobs(150, centers=[[0, 0], [3, 1], [1, 3]], cluster_std=0.8, random_state=0)
X = np.where((y == 1)[:, None], X @ [[1.0, 0.5], [0.0, 0.4]], X)


def _plane(model: object) -> Figure:
    """Free energy over the plane, and the classes of lowest energy."""
    model.fit(X, y)  # type: ignore[attr-defined]
    fig, (left, right) = figure(2)
    landscape(left, X, model.energy)  # type: ignore[attr-defined]
    scatter(left, X, y)
    left.set_title("free energy −log p(x): low where rows are")
    regions(right, X, y, model.predict)  # type: ignore[attr-defined]
    a, b, points = grid(X)
    p = model.predict_proba(points).max(1).reshape(a.shape)  # type: ignore[attr-defined]
    lines = right.contour(a, b, p, levels=[0.7, 0.9, 0.99], colors="black", linewidths=0.7)
    right.clabel(lines, fontsize=7)
    right.set_title("class of lowest energy, with its probability")
    return fig


def _bars(ax: Axes, values: np.ndarray, title: str) -> None:
    width = 0.8 / len(values)
    for k, row in enumerate(values):
        at = np.arange(len(row)) + (k - (len(values) - 1) / 2) * width
        ax.bar(at, row, width, color=COLOURS[k], label=f"class {k}")
    ax.set(title=title, xlabel="feature")
    ax.legend(frameon=False, fontsize=7)


def bernoulli_nb() -> Figure:
    """Probability of a one, and what each feature adds to the energies."""
    p = np.array([[0.8, 0.7, 0.2, 0.3, 0.5], [0.2, 0.4, 0.7, 0.6, 0.5]])
    label = rng.integers(0, 2, 300)
    model = BernoulliNB().fit(rng.uniform(size=(300, 5)) < p[label], label)
    fig, (left, right) = figure(2)
    _bars(left, np.exp(model.feature_log_prob_), "learned probability of a one")
    odds = np.diff(model.energy_.W.detach().numpy(), axis=0)[0]
    right.bar(np.arange(5), odds, color=[COLOURS[int(o > 0)] for o in odds])
    right.set(title="evidence of a one for class 1", xlabel="feature", ylabel="log odds")
    return fig


def multinomial_nb() -> Figure:
    """Words per class."""
    p = np.array([[5, 3, 1, 1, 2], [1, 1, 4, 3, 2], [2, 1, 1, 1, 6]], float)
    label = rng.integers(0, 3, 90)
    rows = np.array([rng.multinomial(20, q / q.sum()) for q in p[label]])
    model = MultinomialNB().fit(rows, label)
    fig, (ax,) = figure(1, width=5.5)
    _bars(ax, np.exp(model.feature_log_prob_), "learned share of every word")
    return fig


def complement_nb() -> Figure:
    """Weights of words, and a class that is rare in training."""
    p = np.array([[6, 3, 1, 1, 1], [1, 3, 6, 1, 1], [1, 1, 1, 3, 6]], float)
    p /= p.sum(1, keepdims=True)
    label = rng.choice(3, 400, p=[0.6, 0.38, 0.02])
    test = rng.integers(0, 3, 3000)
    rows, new = (np.array([rng.multinomial(4, p[c]) for c in at]) for at in (label, test))
    models = {"MultinomialNB": MultinomialNB(), "ComplementNB": ComplementNB()}
    fig, (left, right) = figure(2)
    found = {name: model.fit(rows, label) for name, model in models.items()}
    _bars(
        left, found["ComplementNB"].feature_log_prob_, "weight of every word, −log p(word | others)"
    )
    right.set_title(f"right answers, {int((label == 2).sum())} of {len(label)} rows in class 2")
    for k, (name, model) in enumerate(found.items()):
        share = [(model.predict(new[test == c]) == c).mean() for c in range(3)]
        right.bar(np.arange(3) + 0.4 * k - 0.2, share, 0.4, color=COLOURS[k + 1], label=name)
    right.set(xlabel="class", xticks=range(3))
    right.legend(frameon=False, fontsize=7)
    return fig


def categorical_nb() -> Figure:
    """Categories of one feature per class, more or less smoothed."""
    label = rng.integers(0, 2, 40)
    codes = np.where(label == 0, rng.integers(0, 3, 40), rng.integers(1, 5, 40))[:, None]
    fig, axes = figure(2)
    for ax, alpha in zip(axes, (0.1, 5.0), strict=True):
        model = CategoricalNB(alpha=alpha).fit(codes, label)
        _bars(ax, np.exp(model.feature_log_prob_[0]), f"alpha = {alpha}")
        ax.set_xlabel("category")
    return fig


def gaussian_nb() -> Figure:
    return _plane(GaussianNB())


def linear_discriminant_analysis() -> Figure:
    return _plane(LinearDiscriminantAnalysis())


def quadratic_discriminant_analysis() -> Figure:
    return _plane(QuadraticDiscriminantAnalysis())


PICTURES = {
    "BernoulliNB": bernoulli_nb,
    "CategoricalNB": categorical_nb,
    "ComplementNB": complement_nb,
    "GaussianNB": gaussian_nb,
    "LinearDiscriminantAnalysis": linear_discriminant_analysis,
    "MultinomialNB": multinomial_nb,
    "QuadraticDiscriminantAnalysis": quadratic_discriminant_analysis,
}
