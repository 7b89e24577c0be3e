"""Pictures of the models that are an energy."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure, grid
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import BernoulliRBM, EnergyModel, ScoreModel, ScoreSDE
from groundstate.data import make_bars_and_stripes


def bernoulli_rbm() -> Figure:
    """Bars and stripes: the states of lowest free energy are the ones it was shown."""
    n = 3
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    bars = np.repeat(bits[:, :, None], n, axis=2).reshape(len(bits), -1)
    shown = np.unique(
        np.vstack([bars, bars.reshape(-1, n, n).swapaxes(1, 2).reshape(-1, 9)]), axis=0
    )
    model = BernoulliRBM(
        8, method="exact", learning_rate=1.0, batch_size=14, n_iter=800, random_state=0
    ).fit(shown.astype(float))
    states = ((np.arange(512)[:, None] >> np.arange(9)) & 1).astype(float)
    F = model.energy(states)
    seen = (states[:, None] == shown[None]).all(-1).any(1)
    fig, (left, right, graph) = figure(3)
    spread = np.linspace(F.min(), F.max(), 40)
    left.hist([F[~seen], F[seen]], spread, stacked=True, color=[COLOURS[0], COLOURS[1]])
    left.set(xlabel="free energy", ylabel="states", yscale="log", title="orange: what it was shown")
    best = states[np.argsort(F)[:14]].reshape(2, 7, n, n)
    board = np.full((2 * (n + 1) - 1, 7 * (n + 1) - 1), 0.5)
    for i in range(2):
        for j in range(7):
            board[i * (n + 1) : i * (n + 1) + n, j * (n + 1) : j * (n + 1) + n] = best[i, j]
    right.imshow(board, cmap="Greys", vmin=0, vmax=1)
    right.set(xticks=[], yticks=[], title="the 14 states of lowest free energy")
    model.plot_graph(graph)
    graph.set_title("blue pulls together, red apart")
    return fig


def family() -> Figure:
    """The likelihood of bars and stripes while three gradients learn, and draws of the best."""
    X = make_bars_and_stripes(3)
    fig, (left, right) = figure(2)
    for colour, (name, method) in enumerate({"exact": "exact", "PCD": "pcd", "CD-1": "cd"}.items()):
        model = BernoulliRBM(8, method=method, learning_rate=1.0, random_state=0)
        seen = []
        for _ in range(25):
            for _ in range(10):
                model.partial_fit(X)
            seen.append(model.score(X))
        left.plot(10 * np.arange(1, 26), seen, color=COLOURS[colour], label=name)
        if method == "exact":
            best = model
    left.axhline(-np.log(14), color="grey", linestyle=":", label="the data itself")
    left.set(xlabel="step", title="mean log-likelihood, exact")
    left.legend()
    drawn = best.sample(32, random_state=0).reshape(4, 8, 3, 3)
    board = np.full((15, 31), 0.5)
    for i in range(4):
        for j in range(8):
            board[4 * i : 4 * i + 3, 4 * j : 4 * j + 3] = drawn[i, j]
    right.imshow(board, cmap="Greys", vmin=0, vmax=1)
    right.set(xticks=[], yticks=[], title="draws of the machine")
    return fig


MOONS = make_moons(400, noise=0.08, random_state=0)[0]
NETWORK = {"hidden_layer_sizes": (64, 64), "learning_rate_init": 5e-3, "random_state": 0}


def energy_model() -> Figure:
    """The energy and draws of a network that tells moons from noise."""
    model = EnergyModel(method="nce", max_iter=60, **NETWORK).fit(MOONS)
    a, b, points = grid(MOONS, 80)
    fig, (left, right) = figure(2)
    left.contourf(a, b, model.energy(points).reshape(a.shape), levels=16, cmap="viridis")
    left.scatter(*MOONS[::4].T, s=4, color="white")
    left.set_title("energy: dark is low")
    right.contourf(a, b, np.exp(model.score_samples(points)).reshape(a.shape), 12, cmap="Blues")
    right.scatter(*model.sample(200, random_state=0).T, s=5, color=COLOURS[1])
    right.set_title("density and draws")
    return fig


def score_model() -> Figure:
    """The learned field at a small and a large noise level, and draws."""
    model = ScoreModel(max_iter=50, n_steps=30, **NETWORK).fit(MOONS)
    fig, axes = figure(3, width=9.0)
    at = np.stack(np.meshgrid(np.linspace(-1.6, 2.6, 14), np.linspace(-1.2, 1.7, 12)), -1)
    at = at.reshape(-1, 2)
    for ax, sigma in zip(axes[:2], (0.1, 1.0)):
        way = model.score_function(at, sigma)
        way = way / np.sqrt(np.linalg.norm(way, axis=1, keepdims=True))
        ax.scatter(*MOONS[::4].T, s=3, color=COLOURS[1])
        ax.quiver(*at.T, *way.T, color=COLOURS[0], width=0.005)
        ax.set_title(f"score at noise {sigma:g}")
    axes[2].scatter(*model.sample(300, random_state=0).T, s=4, color=COLOURS[1])
    axes[2].set_title("draws")
    return fig


def score_sde() -> Figure:
    """The density along the flow, and draws by random steps."""
    model = ScoreSDE(max_iter=60, n_steps=100, ode_steps=40, **NETWORK).fit(MOONS)
    a, b, points = grid(MOONS, 40)
    fig, (left, right) = figure(2)
    density = np.exp(model.score_samples(points)).reshape(a.shape)
    left.contourf(a, b, density, levels=14, cmap="Blues")
    left.set_title("density along the flow")
    right.scatter(*model.sample(400, random_state=0).T, s=4, color=COLOURS[1])
    right.set_title("draws")
    return fig


PICTURES = {
    "EnergyModel": energy_model,
    "ScoreModel": score_model,
    "ScoreSDE": score_sde,
    "family-energy": family,
    "BernoulliRBM": bernoulli_rbm,
}
