"""Pictures of the models that are an energy."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import BernoulliRBM
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


PICTURES = {
    "family-energy": family,
    "BernoulliRBM": bernoulli_rbm,
}
