"""Pictures of committees: averages of members, and sums of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from common import COLOURS, figure, grid, scatter
from ensembles import shares
from matplotlib.figure import Figure
from trees import X, stairs, wave, y

from groundstate import (
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GaussianNB,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    KernelRegressor,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LogisticRegression,
    Ridge,
    SeedEnsembleClassifier,
    SeedEnsembleRegressor,
    SnapshotEnsembleClassifier,
    SnapshotEnsembleRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)

AT = np.linspace(0, 6, 400)


def bagged() -> Figure:
    """One tree against the average of thirty on their own draws of the rows."""
    fig, (left, right) = figure(2)
    shares(left, DecisionTreeClassifier(), "one tree")
    shares(right, BaggingClassifier(n_estimators=30, random_state=0), "the average of 30 bags")
    return fig


def curves(model: Any, title: str) -> Figure:
    """The members in grey, their average in colour."""
    x, target = wave()
    fig, (left, right) = figure(2)
    model.fit(x[:, None], target)
    points = torch.from_numpy(AT[:, None])
    members = [model.energy_.member_value(m, points)[:, 0].detach() for m in range(len(model))]
    for ax, shown in ((left, members), (right, [])):
        ax.scatter(x, target, s=12, color="grey", edgecolor="white", linewidth=0.4)
        for k, values in enumerate(shown):
            ax.plot(AT, values, lw=0.8, alpha=0.6, color=COLOURS[k % len(COLOURS)])
    right.plot(AT, model.predict(AT[:, None]), color=COLOURS[0], lw=1.8)
    left.set_title(title)
    right.set_title("their average")
    return fig


def bagged_values() -> Figure:
    """Trees on their own draws of the rows, and their average."""
    return curves(BaggingRegressor(n_estimators=12, random_state=0), "12 trees, each on its bag")


def mixed() -> Figure:
    """Three kinds of members and their average."""
    parts: list[tuple[str, Any]] = [
        ("lines", LogisticRegression()),
        ("bayes", GaussianNB()),
        ("neighbours", KNeighborsClassifier()),
    ]
    fig, axes = figure(4, width=11.0, height=3.0)
    for ax, (name, model) in zip(axes, parts):
        shares(ax, model, name)
    shares(axes[3], VotingClassifier(parts, voting="soft"), "their average")
    return fig


def mixed_values() -> Figure:
    """Three kinds of members and their average."""
    parts: list[tuple[str, Any]] = [
        ("line", Ridge()),
        ("tree", DecisionTreeRegressor(max_depth=3)),
        ("neighbours", KNeighborsRegressor(15)),
    ]
    return curves(VotingRegressor(parts), "a line, a tree, neighbours")


def stacked() -> Figure:
    """A member that learned the rows by heart: what an average and a stack make of it."""
    parts: list[tuple[str, Any]] = [
        ("bayes", GaussianNB()),
        ("one neighbour", KNeighborsClassifier(1)),
    ]
    fig, axes = figure(4, width=11.0, height=3.0)
    for ax, (name, model) in zip(axes, parts):
        shares(ax, model, name)
    shares(axes[2], VotingClassifier(parts, voting="soft"), "their average")
    shares(axes[3], StackingClassifier(parts), "stacked")
    return fig


def stacked_values() -> Figure:
    """Two members, and the weights that out-of-fold answers give them."""
    x, target = wave()
    parts: list[tuple[str, Any]] = [
        ("line", Ridge()),
        ("one neighbour", KNeighborsRegressor(1)),
        ("15 neighbours", KNeighborsRegressor(15)),
    ]
    model = StackingRegressor(parts).fit(x[:, None], target)
    fig, (left, right) = figure(2)
    left.scatter(x, target, s=12, color="grey", edgecolor="white", linewidth=0.4)
    left.plot(AT, model.predict(AT[:, None]), color=COLOURS[0], lw=1.8)
    left.set_title("stacked")
    right.bar([name for name, _ in parts], np.ravel(model.final_estimator_.coef_), color=COLOURS[1])
    right.set_title("weight of each member")
    return fig


def seeds() -> Figure:
    """Two seeds of one model, and the average of twenty."""
    tree = DecisionTreeClassifier(max_features=1)
    fig, axes = figure(3, width=10.0)
    for ax, seed in zip(axes, (1, 2)):
        shares(ax, DecisionTreeClassifier(max_features=1, random_state=seed), f"seed {seed}")
    shares(axes[2], SeedEnsembleClassifier(tree, 20, random_state=0), "the average of 20 seeds")
    return fig


def seed_values() -> Figure:
    """Trees with random cuts under different seeds."""
    tree = DecisionTreeRegressor(splitter="random", max_depth=4)
    return curves(
        SeedEnsembleRegressor(tree, 8, random_state=0), "8 seeds of a tree with random cuts"
    )


def snapshots() -> Figure:
    """Lines that SGD passes at a constant rate, and the probability they average to."""
    fig, (left, right) = figure(2)
    settings: dict[str, Any] = {"learning_rate": 0.5, "batch_size": 8, "random_state": 0}
    model = SnapshotEnsembleClassifier(n_snapshots=15, **settings).fit(X, y)
    a, b, points = grid(X)
    rows = torch.from_numpy(points)
    for m in range(len(model)):
        distribution = (
            model.energy_.member_log_distribution(m, rows).exp()[:, 1].detach().reshape(a.shape)
        )
        left.contour(a, b, distribution, levels=[0.5], colors=[COLOURS[m % 4]], linewidths=0.8)
    scatter(left, X, y)
    left.set_title("where 15 snapshots are undecided")
    shares(right, SnapshotEnsembleClassifier(n_snapshots=15, **settings), "their average")
    return fig


def snapshot_values() -> Figure:
    """Lines that SGD passes at a constant rate."""
    model = SnapshotEnsembleRegressor(Ridge(), learning_rate=0.05, batch_size=4, random_state=0)
    return curves(model, "10 snapshots of a line")


def steps() -> Figure:
    """Scores after few and after many steps."""
    fig, axes = figure(2)
    for ax, n in zip(axes, (5, 60), strict=True):
        shares(ax, GradientBoostingClassifier(n_estimators=n), f"after {n} steps")
    return fig


def step_values() -> Figure:
    """Boosted stumps, and a boosted smoother."""
    x, target = wave()
    fig, (left, right) = figure(2)
    stairs(left, GradientBoostingRegressor(max_depth=1), x, target, "100 stumps")
    smooth = partial(GradientBoostingRegressor, estimator=KernelRegressor(), line_search="exact")
    stairs(right, smooth(n_estimators=20), x, target, "20 smoothers, exact line search")
    return fig


PICTURES = {
    "BaggingClassifier": bagged,
    "BaggingRegressor": bagged_values,
    "GradientBoostingClassifier": steps,
    "GradientBoostingRegressor": step_values,
    "SeedEnsembleClassifier": seeds,
    "SeedEnsembleRegressor": seed_values,
    "SnapshotEnsembleClassifier": snapshots,
    "SnapshotEnsembleRegressor": snapshot_values,
    "StackingClassifier": stacked,
    "StackingRegressor": stacked_values,
    "VotingClassifier": mixed,
    "VotingRegressor": mixed_values,
}
