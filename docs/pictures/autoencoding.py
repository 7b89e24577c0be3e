"""Pictures of variational autoencoders."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import (
    DDPM,
    VAE,
    Autoencoder,
    ConditionalVAE,
    HierarchicalVAE,
    LatentDiffusion,
    VQAutoencoder,
)


def _arc(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 1.5 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t)]) + 0.08 * rng.normal(size=(n, 2))


def vae() -> Figure:
    """Rows and draws, the codes of the rows, and what the code's quantiles decode to."""
    X = _arc(300)
    model = VAE(
        2, hidden_layer_sizes=(32,), learning_rate_init=1e-2, max_iter=80, random_state=0
    ).fit(X)
    drawn = model.sample(300, random_state=0)
    fig, (left, middle, right) = figure(3)
    left.scatter(*X.T, s=8, color=COLOURS[0], label="rows")
    left.scatter(*drawn.T, s=8, color=COLOURS[1], label="draws")
    left.set(title="rows and draws", aspect="equal")
    left.legend()
    codes = model.transform(X)
    middle.scatter(*codes.T, s=8, c=np.arctan2(X[:, 1], X[:, 0]), cmap="twilight")
    for r in (1, 2):
        t = np.linspace(0, 2 * np.pi, 100)
        middle.plot(r * np.cos(t), r * np.sin(t), color="grey", linewidth=0.7)
    middle.set(title="means of the codes", aspect="equal")
    grid = model.latent_grid(12).reshape(-1, 2)
    right.scatter(*X.T, s=5, color="lightgrey")
    right.scatter(*grid.T, s=10, color=COLOURS[2])
    right.set(title="decoded normal quantiles", aspect="equal")
    return fig


def conditional_vae() -> Figure:
    """Half-moons with three labels each."""
    from sklearn.datasets import make_moons

    X, y = make_moons(300, noise=0.08, random_state=0)
    known = np.full(len(y), -1)
    for c in (0, 1):
        known[np.flatnonzero(y == c)[:3]] = c
    model = ConditionalVAE(
        2, hidden_layer_sizes=(32,), learning_rate_init=1e-2, max_iter=300, label_weight=10.0,
        random_state=0,
    ).fit(X, known)  # fmt: skip
    fig, (left, right) = figure(2)
    left.scatter(*X[known < 0].T, s=6, color="lightgrey")
    for c in (0, 1):
        left.scatter(*X[known == c].T, s=60, color=COLOURS[c])
        right.scatter(*model.sample(200, y=c, random_state=c).T, s=8, color=COLOURS[c])
    left.set(title="three labels of each class", aspect="equal")
    right.set(title="draws of each class", aspect="equal")
    return fig


def hierarchical_vae() -> Figure:
    """Rows in four groups, draws, and what each level of the code costs."""
    rng = np.random.default_rng(0)
    corners = np.array([[1.0, 1.0], [1, -1], [-1, 1], [-1, -1]])
    X = corners[rng.integers(0, 4, 300)] + 0.15 * rng.normal(size=(300, 2))
    model = HierarchicalVAE(
        (2, 1), likelihood_scale=0.2, hidden_layer_sizes=(32,), learning_rate_init=1e-2,
        max_iter=60, n_iter_no_change=np.inf, random_state=0,
    ).fit(X)  # fmt: skip
    terms = model.elbo_terms(X)
    fig, (left, middle, right) = figure(3)
    left.scatter(*X.T, s=8, color=COLOURS[0], label="rows")
    left.scatter(*model.sample(300, random_state=0).T, s=8, color=COLOURS[1], label="draws")
    left.set(title="rows and draws", aspect="equal")
    left.legend()
    codes = model.transform(X)
    middle.scatter(codes[:, 0], codes[:, 1], s=8, c=codes[:, 2], cmap="twilight")
    middle.set(title="level 1, coloured by level 2", xlabel="$z_{11}$", ylabel="$z_{12}$")
    costs = [terms.steps[0].mean(), terms.prior.mean()]
    right.bar(["level 1", "level 2"], costs, color=COLOURS[2])
    right.set(title="nats of each level")
    return fig


def vq_autoencoder() -> Figure:
    """Rows coloured by their token, and the decoded codebook."""
    X = _arc(300)
    model = VQAutoencoder(
        2, n_codes=16, hidden_layer_sizes=(32,), learning_rate_init=1e-2, max_iter=60,
        random_state=0,
    ).fit(X)  # fmt: skip
    fig, (left, right) = figure(2)
    left.scatter(*X.T, s=8, c=model.tokens(X)[:, 0], cmap="tab20")
    left.set(title="rows and their tokens", aspect="equal")
    right.scatter(*X.T, s=5, color="lightgrey")
    right.scatter(*model.inverse_transform(model.codebook_).T, s=40, color=COLOURS[1])
    right.set(title="the codebook, decoded", aspect="equal")
    return fig


def latent_diffusion() -> Figure:
    """A ring in eight columns: rows, draws, and their codes."""
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 2 * np.pi, 300)
    X = np.column_stack([np.cos(t), np.sin(t)]) @ rng.normal(size=(2, 8))
    first = Autoencoder(2, (16,), max_iter=60, learning_rate_init=1e-2, random_state=0)
    second = DDPM(
        30, "cosine", max_iter=80, learning_rate_init=5e-3, hidden_layer_sizes=(32,),
        random_state=0,
    )  # fmt: skip
    model = LatentDiffusion(first, second).fit(X)
    drawn, codes = model.sample(300, return_latent=True, random_state=0)
    fig, (left, right) = figure(2)
    for rows, z, colour, name in ((X, model.transform(X), 0, "rows"), (drawn, codes, 1, "draws")):
        left.scatter(*rows.T[:2], s=8, color=COLOURS[colour], label=name)
        right.scatter(*z.T, s=8, color=COLOURS[colour])
    left.set(title="two of eight columns")
    left.legend()
    right.set(title="codes")
    return fig


def family() -> Figure:
    """The bound while it learns, and the estimate by more and more draws above it."""
    X = _arc(300)
    fig, (left, right) = figure(2)
    model = VAE(1, hidden_layer_sizes=(32,), learning_rate_init=1e-2, max_iter=1, random_state=0)
    bounds = []
    for _ in range(40):
        model.partial_fit(X)
        bounds.append(model.elbo(X).mean())
    left.plot(np.arange(1, 41), bounds, color=COLOURS[0])
    left.set(xlabel="epoch", title="mean bound on log p")
    draws = [1, 3, 10, 30, 100, 300]
    found = [model.importance(X, None, n).log_prob.mean() for n in draws]
    right.axhline(bounds[-1], color=COLOURS[0], label="bound")
    right.semilogx(draws, found, "o-", color=COLOURS[1], label="importance sampling")
    right.set(xlabel="draws per row", title="mean log p, estimated")
    right.legend()
    return fig


PICTURES = {
    "family-autoencoders": family,
    "VAE": vae,
    "ConditionalVAE": conditional_vae,
    "HierarchicalVAE": hierarchical_vae,
    "LatentDiffusion": latent_diffusion,
    "VQAutoencoder": vq_autoencoder,
}
