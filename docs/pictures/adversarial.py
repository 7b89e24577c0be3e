"""Pictures of games: the best discriminator, what slopes players learn from, and what they end in."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, Plain, figure, landscape
from matplotlib.figure import Figure
from scipy.stats import norm
from torch.distributions import Normal

from groundstate import WGAN, ConditionalGAN, EnergyGAN, TranslationGAN
from groundstate.data import make_edge_pairs, make_eight_gaussians
from groundstate.learn.losses.gan import gan
from groundstate.math.divergences import optimal_discriminator, optimal_value
from groundstate.models.generative.adversarial import NeuralSampler
from groundstate.models.generative.adversarial.gan import LISTING
from groundstate.nn.adversarial import DenseDiscriminator, DenseGenerator
from groundstate.nn.inspect.players import draw_game


def family() -> Figure:
    """The best discriminator, the value against the distance, and slopes of the generator's losses."""
    fig, (left, middle, right) = figure(3, width=10.0)
    x = np.linspace(-4, 6, 201)
    left.plot(x, norm.pdf(x), color=COLOURS[0], label="data N(0, 1)")
    left.plot(x, norm.pdf(x, 2), color=COLOURS[1], label="generated N(2, 1)")
    best = optimal_discriminator(norm.logpdf(x), norm.logpdf(x, 2))
    left.plot(x, best, color=COLOURS[2], label="best discriminator")
    left.legend(fontsize=7)
    left.set_title("σ(2 - 2x)")
    mu = np.linspace(0, 6, 25)
    p = Normal(torch.tensor(0.0), torch.tensor(1.0))
    v = [float(optimal_value(p, Normal(torch.tensor(float(m)), torch.tensor(1.0)))) for m in mu]
    middle.plot(mu, v, color=COLOURS[0], label="value of the game, 2 JS - 2 log 2")
    middle.plot(mu, mu, color=COLOURS[3], label="Wasserstein distance")
    middle.legend(fontsize=7)
    middle.set_xlabel("distance of the means")
    middle.set_title("far apart, one still has a slope")
    t = torch.linspace(-6, 4, 101, requires_grad=True)
    for k, name in enumerate(("nonsaturating", "minimax", "lsgan", "hinge")):
        (slope,) = torch.autograd.grad(gan(name).generator(t).sum(), t)
        right.plot(t.detach(), slope, color=COLOURS[k], label=name)
    right.set_ylim(-3, 1)
    right.set_xlabel("logit of a generated row")
    right.legend(fontsize=7)
    right.set_title("slope of the generator's loss")
    return fig


def listing() -> Plain:
    """The two players of the listing for MNIST."""
    made = DenseGenerator(100, LISTING, [1] * 784)
    return Plain(draw_game(made, DenseDiscriminator(784, LISTING[::-1]), 784))


def wgan() -> Figure:
    """A critic between two normals."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(0, 1, 600), rng.normal(0, 1, 600)].astype("float32")
    model = WGAN(4, (32, 32), scale=None, learning_rate_init=2e-3, batch_size=200, max_iter=60,
                 random_state=0).fit(X)  # fmt: skip
    fig, (left, right) = figure(2)
    landscape(left, X, model.energy)
    drawn = model.sample(300, random_state=0)
    left.scatter(*drawn.T, s=6, color=COLOURS[1])
    left.set_title("minus the critic, and generated rows")
    right.plot(model.loss_curve_, color=COLOURS[0], label="critic")
    right.plot(model.generator_loss_curve_, color=COLOURS[1], label="generator")
    right.set_xlabel("epoch")
    right.legend(fontsize=7)
    right.set_title(f"gap at the end {model.critic_gap_:.2f}")
    return fig


def conditional() -> Figure:
    """Rows drawn for each of two labels."""
    rng = np.random.default_rng(0)
    y = rng.choice(["low", "high"], 300)
    X = rng.normal(np.where(y == "high", 2.0, -2.0)[:, None], 0.7, (300, 2)).astype("float32")
    model = ConditionalGAN(4, (32,), learning_rate_init=3e-3, r1=0.1, max_iter=60, random_state=0)
    model.fit(X, y)
    fig, (ax,) = figure(1, width=4.5)
    ax.scatter(*X.T, s=8, color="#bbbbbb", label="data")
    for k, label in enumerate(("low", "high")):
        ax.scatter(*model.sample(150, label, random_state=0).T, s=8, color=COLOURS[k], label=label)
    ax.legend(fontsize=7)
    ax.set_title("drawn for each label")
    return fig


def energy() -> Figure:
    """The energy around eight clouds."""
    X = np.asarray(make_eight_gaussians(600, random_state=0)[0], "float32")
    model = EnergyGAN(4, (64, 64), learning_rate_init=2e-3, max_iter=40, random_state=0).fit(X)
    fig, (ax,) = figure(1, width=4.5)
    landscape(ax, X, lambda x: np.minimum(model.energy(x.astype("float32")), model.margin_))
    ax.scatter(*X[:300].T, s=5, color="white", edgecolor="#555555", linewidth=0.3)
    ax.scatter(*model.sample(200, random_state=0).T, s=6, color=COLOURS[1])
    ax.set_title("energy, data (white) and generated rows")
    return fig


def translation() -> Figure:
    """Outlines, paintings, shapes."""
    A, B, _ = make_edge_pairs(200, 16, random_state=0)
    model = TranslationGAN(base=8, depth=1, d_base=8, d_depth=1, learning_rate_init=2e-3,
                           max_iter=4, random_state=0).fit(B[:160], A[:160])  # fmt: skip
    painted = model.translate(A[160:])
    fig = Figure(figsize=(6.0, 3.2), layout="constrained")
    for row, (name, images) in enumerate(
        (("given", A[160:]), ("painted", painted), ("true", B[160:]))
    ):
        for k in range(6):
            ax = fig.add_subplot(3, 6, 6 * row + k + 1)
            ax.imshow(np.squeeze(images[k]), cmap="gray", vmin=0, vmax=1)
            ax.set_xticks([])
            ax.set_yticks([])
            if k == 0:
                ax.set_ylabel(name)
    return fig


def sampler() -> Figure:
    """Draws from a double well with and without entropy."""

    def well(x: torch.Tensor) -> torch.Tensor:
        return 2 * (x[:, 0] ** 2 - 1) ** 2 + 2 * x[:, 1] ** 2

    fig, axes = figure(2)
    plane = np.array([[-2.0, -1.5], [2.0, 1.5]])
    for ax, lam, title in zip(axes, ("auto", 0.0), ("with the entropy", "without"), strict=True):
        model = NeuralSampler(well, lam, n_features=2, batch_size=128, max_iter=300,
                              learning_rate_init=5e-3, random_state=0).fit()  # fmt: skip
        landscape(ax, plane, lambda x: np.minimum(well(torch.from_numpy(x)).numpy(), 8))
        ax.scatter(*model.sample(400, random_state=0).T, s=5, color=COLOURS[1])
        ax.set_title(title)
    return fig


PICTURES = {
    "family-adversarial": family,
    "GAN": listing,
    "WGAN": wgan,
    "ConditionalGAN": conditional,
    "EnergyGAN": energy,
    "TranslationGAN": translation,
    "neural-sampler": sampler,
}
