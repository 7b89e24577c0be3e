"""Pictures of graphical models."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import (
    DiscreteBayesianNetwork,
    HiddenMarkovModel,
    LinearGaussianBayesianNetwork,
    MarkovRandomField,
    SumProductNetwork,
)


def sprinkler() -> DiscreteBayesianNetwork:
    return DiscreteBayesianNetwork.from_tables(
        [("cloudy", "sprinkler"), ("cloudy", "rain"), ("sprinkler", "wet"), ("rain", "wet")],
        {
            "cloudy": [0.5, 0.5],
            "sprinkler": [[0.5, 0.5], [0.9, 0.1]],
            "rain": [[0.8, 0.2], [0.2, 0.8]],
            "wet": [[[1.0, 0.0], [0.1, 0.9]], [[0.1, 0.9], [0.01, 0.99]]],
        },
    )


def family() -> Figure:
    """What is believed, what wet grass changes, and what an intervention changes."""
    net = sprinkler()
    fig, axes = figure(3, height=3.6)
    net.plot(axes[0])
    net.plot(axes[1], evidence={"wet": 1})
    net.do(sprinkler=1).plot(axes[2])
    for ax, title in zip(axes, ("a network", "given wet grass", "do(sprinkler = 1)"), strict=True):
        ax.set_title(title)
    return fig


def bayesian_network() -> Figure:
    """Rivals: the alarm rings, and then an earthquake is reported."""
    either = [[[0.999, 0.001], [0.2, 0.8]], [[0.1, 0.9], [0.02, 0.98]]]
    net = DiscreteBayesianNetwork.from_tables(
        [("burglary", "alarm"), ("quake", "alarm")],
        {"burglary": [0.95, 0.05], "quake": [0.95, 0.05], "alarm": either},
    )
    fig, axes = figure(3, height=2.6)
    for ax, given in zip(axes, ({}, {"alarm": 1}, {"alarm": 1, "quake": 1}), strict=True):
        net.plot(ax, evidence=given)
        ax.set_title(", ".join(given) or "nothing is known")
    return fig


def gaussian_network() -> Figure:
    """A column given another: the regression line with its spread."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([1, 1], [[2, 2], [2, 3]], 300)
    net = LinearGaussianBayesianNetwork([(0, 1)]).fit(X)
    fig, (left, right) = figure(2)
    net.plot(left)
    left.set_title("x0 → x1")
    grid = np.linspace(X[:, 1].min(), X[:, 1].max(), 50)
    found = [net.conditional({1: v}) for v in grid]
    mean = np.array([m[0] for m, _ in found])
    spread = np.sqrt([c[0, 0] for _, c in found])
    right.scatter(X[:, 1], X[:, 0], s=6, color=COLOURS[1], alpha=0.5)
    right.plot(grid, mean, color=COLOURS[0])
    right.fill_between(grid, mean - 2 * spread, mean + 2 * spread, color=COLOURS[0], alpha=0.2)
    right.set(xlabel="x1, observed", ylabel="x0, missing", title="x0 given x1")
    return fig


def field() -> Figure:
    """Draws of an Ising model on a grid, from loose to tight."""
    side = 16
    at = np.arange(side * side).reshape(side, side)
    pairs = [
        *zip(at[:, :-1].ravel(), at[:, 1:].ravel(), strict=True),
        *zip(at[:-1].ravel(), at[1:].ravel(), strict=True),
    ]
    edges = [(int(a), int(b)) for a, b in pairs]
    fig, axes = figure(3, height=2.4)
    for ax, J in zip(axes, (0.2, 0.4, 0.6), strict=True):
        model = MarkovRandomField.from_energies(
            edges, [J] * len(edges), [2] * side * side, n_sweeps=30
        )
        vars(model.energy_)["_exact"] = False  # a grid of this side is drawn by Gibbs sampling
        ax.imshow(model.sample(1, random_state=0).reshape(side, side), cmap="gray")
        ax.set(title=f"J = {J}", xticks=[], yticks=[])
    return fig


def hidden_chain() -> Figure:
    """A sequence, the states behind it, and what is known of them."""
    true = HiddenMarkovModel.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], means=[[0.0], [2.5]], covars=[[1.0], [1.0]]
    )
    X, z = true.sample(6, 120, return_latent=True, random_state=3)
    model = HiddenMarkovModel(2, random_state=0).fit(X)
    fig, (left, right) = figure(2)
    t = np.arange(120)
    left.plot(t, X[0, :, 0], ".", color=COLOURS[1])
    left.step(t, model.means_[model.predict(X)[0], 0], color=COLOURS[0], where="mid")
    left.set(title="steps, and the mean of the best path", xlabel="t")
    right.plot(t, model.filter(X[:1])[0][:, 1], color=COLOURS[2], label="filtered", linewidth=0.8)
    right.plot(t, model.smooth(X[:1])[0][:, 1], color=COLOURS[0], label="smoothed")
    right.fill_between(t, z[0], step="mid", color="black", alpha=0.1, label="true")
    right.set(title="probability of the high state", xlabel="t")
    right.legend(fontsize=7)
    return fig


def circuit() -> Figure:
    """A density of two columns that a circuit learned, and one column given the other."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 600)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * 2 + 0.25 * rng.normal(size=(600, 2))
    model = SumProductNetwork(min_rows=60, max_iter=30, random_state=0).fit(X)
    fig, (left, right) = figure(2)
    axis = np.linspace(-3, 3, 60)
    grid = np.array([[a, b] for b in axis for a in axis])
    left.contourf(axis, axis, np.exp(model.score_samples(grid)).reshape(60, 60), cmap="Blues")
    left.scatter(*X[:200].T, s=3, color=COLOURS[1])
    left.set(title="density of the rows")
    for x, colour in ((0.0, COLOURS[0]), (1.5, COLOURS[2])):
        line = np.column_stack([np.full(60, x), axis])
        alone = model.score_samples(np.array([[x, np.nan]]))
        right.plot(axis, np.exp(model.score_samples(line) - alone), color=colour, label=f"x0 = {x}")
    right.set(title="x1 given x0")
    right.legend(fontsize=7)
    return fig


PICTURES = {
    "family-graphical": family,
    "DiscreteBayesianNetwork": bayesian_network,
    "LinearGaussianBayesianNetwork": gaussian_network,
    "MarkovRandomField": field,
    "HiddenMarkovModel": hidden_chain,
    "SumProductNetwork": circuit,
}
