r"""The bound of a latent-variable model touches the likelihood exactly at the posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.energy import LinearGaussianLVM, best_squared_weights
from groundstate.experiments.base import COLOURS, Claim, Result, experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG_2PI = float(np.log(2 * np.pi))
MEAN = np.array([1.0, 1.0, -1.0])
COV = np.array([[2.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
SPECTRUM = torch.tensor([9.0, 4.0, 0.5, 0.3, 0.2], dtype=torch.float64)
GRID = np.linspace(-9, 9, 6001)
NOISE = 0.4


def log_normal(x: np.ndarray | float, mean: np.ndarray | float, var: float) -> np.ndarray:
    return np.asarray(-0.5 * (np.square(x - mean) / var + np.log(var) + LOG_2PI))


def bent(x: float) -> tuple[float, np.ndarray, np.ndarray]:
    """log p(x), log p(z | x) and log p(x, z) on the grid, for x | z ~ N(z + sin 2z, NOISE)."""
    joint = log_normal(GRID, 0.0, 1.0) + log_normal(x, GRID + np.sin(2 * GRID), NOISE)
    top = joint.max()
    log_p = float(top + np.log(np.exp(joint - top).sum() * (GRID[1] - GRID[0])))
    return log_p, joint - log_p, joint


def bound(x: float, m: float, s: float) -> tuple[float, float, float]:
    """The bound of q = N(m, s²), log p(x), and KL(q, posterior), by sums over the grid."""
    log_p, posterior, joint = bent(x)
    q = log_normal(GRID, m, s * s)
    w = np.exp(q)
    w = w / w.sum()
    return float(w @ (joint - q)), log_p, float(w @ (q - posterior))


def gaussian_terms(var: float) -> tuple[float, float, float]:
    """Mean reconstruction, mean divergence to the matched prior and to N(0, I), encoder (x1, x3)."""
    E = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    spread = E @ COV @ E.T + var * np.eye(2)  # of z
    rest = COV - COV @ E.T @ np.linalg.inv(spread) @ E @ COV  # of x given z
    reconstruction = -0.5 * (3 * (LOG_2PI + 1) + np.linalg.slogdet(rest)[1])
    entropy = LOG_2PI + 1 + np.log(var)  # of q, two numbers
    matched = 0.5 * (2 * (LOG_2PI + 1) + np.linalg.slogdet(spread)[1]) - entropy
    second = float(np.trace(spread) + np.square(E @ MEAN).sum())
    standard = LOG_2PI + 0.5 * second - entropy
    return float(reconstruction), float(matched), float(standard)


def restricted(squared: torch.Tensor) -> tuple[float, float]:
    """Mean bound with q = N(μ, I) and mean log p of the linear model with these squared weights."""
    e = LinearGaussianLVM(5, 2).double().requires_grad_(False)
    e.W.zero_()
    e.W[0, 0], e.W[1, 1] = squared[0].sqrt(), squared[1].sqrt()
    m = e.marginal_x().covariance_matrix.diagonal()
    log_p = float(-0.5 * (SPECTRUM / m + m.log() + LOG_2PI).sum())
    return log_p - float(e.unit_gap()), log_p


@experiment("GENX-elbo", theme="generative", title="The bound touches at the posterior")
def elbo(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For every q the bound is :math:`J = E_q[\log p(x, z) - \log q(z)] = \log p(x) - \mathrm{KL}(q\,\|\,
    p(z \mid x))`, so it touches :math:`\log p` exactly where q is the posterior.

    One bent latent on a grid with random normal q; a Gaussian in three dimensions whose encoder reads
    two of them with noise σ, where the matched prior makes the mean bound :math:`-H(x)` for all σ; and
    the linear model whose q has a fixed spread, where raising J lowers :math:`\log p`.
    """
    rng = Key.of(seed).fold("elbo").numpy()
    trials = [
        bound(float(rng.normal(0, 1.5)), float(rng.normal()), float(rng.uniform(0.2, 1.5)))
        for _ in range(20 if quick else 200)
    ]
    error = max(abs(log_p - J - kl) for J, log_p, kl in trials)
    above = max(J - log_p for J, log_p, _ in trials)
    totals = [r - k for r, k, _ in map(gaussian_terms, (0.001, 0.01, 0.1, 1.0, 10.0))]
    r, matched, standard = gaussian_terms(0.01)
    first, second = (
        restricted(best_squared_weights(SPECTRUM, unit=unit)) for unit in (False, True)
    )
    claims = [
        Claim.below("log p − J − KL, largest of all q", error, 1e-10),
        Claim.below("J − log p, largest of all q", above, 1e-12),
        Claim.close("matched prior, σ² = 0.01: mean bound", r - matched, -4.603389, tol=1e-6),
        Claim.below("its spread over σ² from 0.001 to 10", float(np.ptp(totals)), 1e-10),
        Claim.close("mean reconstruction", r, 0.355824, tol=1e-6),
        Claim.close("mean divergence, matched prior", matched, 4.959213, tol=1e-6),
        Claim.close("mean divergence, prior N(0, I)", standard, 6.115170, tol=1e-6),
        Claim.close("fixed spread, w² = (8, 3): J", first[0], -11.594693, tol=1e-6),
        Claim.close("fixed spread, w² = (2, 1): J", second[0], -9.094693, tol=1e-6),
        Claim.close("w² = (8, 3): log p", first[1], -7.886452, tol=1e-6),
        Claim.close("w² = (2, 1): log p", second[1], -8.490572, tol=1e-6),
    ]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        xs = np.linspace(-3.5, 3.5, 121)
        curve = [bent(float(x))[0] for x in xs]
        left.plot(xs, curve, color="black", label="log p(x)")
        for i, at in enumerate((-1.5, 0.5, 2.0)):
            posterior = np.exp(bent(at)[1]) * (GRID[1] - GRID[0])
            m = float(posterior @ GRID)
            s = float(np.sqrt(posterior @ np.square(GRID - m)))
            left.plot(xs, [bound(float(x), m, s)[0] for x in xs], color=COLOURS[i])
            left.plot(at, bent(at)[0], "o", color=COLOURS[i])
        left.set(ylim=(min(curve) - 1, max(curve) + 0.5), xlabel="x",
                 title="bounds of three fixed q under log p")  # fmt: skip
        left.legend()
        names, values = ("J", "log p"), np.array([first, second])
        places = np.arange(2)
        for i, (name, row) in enumerate(zip(("w² = (8, 3)", "w² = (2, 1)"), values, strict=True)):
            right.bar(places + 0.4 * i, row, 0.38, color=COLOURS[i], label=name)
        right.set(xticks=places + 0.2, xticklabels=names, title="raising J lowers log p")
        right.legend()

    return Result(claims, {"J": [first[0], second[0]], "log_p": [first[1], second[1]]}, draw)
