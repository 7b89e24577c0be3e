r"""EM never lowers the likelihood; the bound touches it after each E-step."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import make_blobs
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NLL, History, MixtureEM, fit

STEPS = 40


@experiment("UNSX-em-monotone", theme="unsupervised", title="EM never lowers the likelihood")
def em_monotone(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Both halves of EM raise one bound, and the E-step makes it the likelihood:

    .. math:: \log p(\theta^+) \ge J(q, \theta^+) \ge J(q, \theta) = \log p(\theta),\qquad
              J(q, \theta) = \tfrac1n\sum_iE_{q_i}[\log p(x_i, z)] + H(q_i).

    Two Gaussians on the points −2, −1, 1, 3, and three on three clouds. In a model with two hidden
    numbers, :math:`x \mid z_1, z_2 \sim N(a_{z_1} + b_{z_2}, I)`, and q restricted to
    :math:`q(z_1)\,q(z_2)`, the bound still climbs, but stays below the likelihood, which may fall.
    """
    key = Key.of(seed)
    line = torch.tensor([[-2.0], [-1.0], [1.0], [3.0]], dtype=torch.float64)
    points = _em(line, torch.tensor([[-1.0], [1.0]], dtype=torch.float64))
    X = torch.from_numpy(make_blobs(300, centers=[[0, 0], [5, 0], [0, 5]], random_state=seed)[0])
    start = X[torch.randperm(len(X), generator=key.fold("start").torch())[:3]]
    clouds = _em(X, start)
    bound, likelihood = _mean_field(key.fold("factorial"))
    gap, rise = likelihood - bound[::2], float(np.diff(bound).min())
    claims = [
        Claim.close("four points: log p at the start", points[0][0], -2.168465, tol=1e-6),
        Claim.close("four points: log p after two steps", points[0][2], -1.772379, tol=1e-6),
        Claim.at_most("four points: largest fall of a half step", _fall(points), 1e-10),
        Claim.at_most("four points: |J − log p| after an E-step", points[2], 1e-10),
        Claim.at_most("three clouds: largest fall of a half step", _fall(clouds), 1e-10),
        Claim.at_most("three clouds: |J − log p| after an E-step", clouds[2], 1e-10),
        Claim.at_least("q(z₁)q(z₂): least rise of the bound in a half step", rise, -1e-10),
        Claim.above("q(z₁)q(z₂): least gap to the likelihood after an E-step", float(gap.min()), 1e-4),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 3)
        runs = (("four points", points, 6), ("three clouds", clouds, 12))
        for ax, (title, (low, between, _), n) in zip(axes, runs):
            for t, b in enumerate(between[:n]):
                path = [low[t], b, low[t + 1]]
                ax.plot([t, t + 0.5, t + 1], path, color=COLOURS[5], linewidth=1, zorder=0)
            ax.plot(low[: n + 1], "o", markersize=4, color=COLOURS[0], label="log p = J after E")
            ax.plot(np.arange(len(between[:n])) + 0.5, between[:n], "s", markersize=4,
                    color=COLOURS[1], label="J after M")  # fmt: skip
            ax.set(title=title, xlabel="iteration")
            ax.legend()
        axes[2].plot(likelihood, color=COLOURS[0], label="log p")
        axes[2].plot(bound[::2], color=COLOURS[1], label="J of q(z₁)q(z₂)")
        axes[2].set(title="a restricted q leaves a gap", xlabel="iteration")
        axes[2].legend()

    numbers = {"log p": clouds[0], "J": bound.tolist(), "gap": gap.tolist()}
    return Result(claims, numbers, draw, size=(10.0, 3.0))


def _em(x: Tensor, means: Tensor) -> tuple[list[float], list[float], float]:
    """Log-likelihoods, bounds between them, and how far J after E is from log p."""
    energy = GaussianMixtureEnergy(len(means), x.shape[1], reg_covar=0.0).double()
    energy.mu.data.copy_(means)
    likelihood, touch = [], 0.0
    history = History(solver="")
    between: list[float] = []
    for _ in range(STEPS):  # one step at a time, so that log p is taken by itself
        with torch.no_grad():
            likelihood.append(float(torch.logsumexp(-energy.energies(x), 1).mean()))
        solver = MixtureEM(max_iter=1, tol=None, audit=True)
        history = fit(energy, {"x": x}, NLL(), solver)
        touch = max(touch, abs(history.extra["log_likelihood"][0] - likelihood[-1]))
        between.append(history.extra["bound"][0])
    return [*likelihood, history.extra["log_likelihood"][-1]], between, touch


def _fall(run: tuple[list[float], list[float], float]) -> float:
    likelihood, between = np.array(run[0]), np.array(run[1])
    return float(np.maximum(likelihood[:-1] - between, between - likelihood[1:]).max())


def _mean_field(key: Key, n: int = 200, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Bounds after every half step ``(2T,)``, and log-likelihoods ``(T,)`` after E."""
    rng = key.numpy()
    a, b = rng.normal(0, 2, (k, 2)), rng.normal(0, 2, (k, 2))
    x = a[rng.integers(k, size=n)] + b[rng.integers(k, size=n)] + rng.normal(size=(n, 2))
    a, b = rng.normal(0, 1, (k, 2)), rng.normal(0, 1, (k, 2))
    q1 = q2 = np.full((n, k), 1 / k)
    bounds, likelihood = [], []
    for _ in range(STEPS):
        log_joint = _log_joint(x, a, b)
        for _ in range(5):  # each of the two given the other
            q1 = _softmax(np.einsum("nij,nj->ni", log_joint, q2))
            q2 = _softmax(np.einsum("nij,ni->nj", log_joint, q1))
        bounds.append(_bound(log_joint, q1, q2))
        top = log_joint.max((1, 2))
        total = np.log(np.exp(log_joint - top[:, None, None]).sum((1, 2))) + top
        likelihood.append(float(total.mean()))
        code = np.hstack([q1, q2])  # least squares of x on the expected one-hot codes of both
        gram = code.T @ code
        gram[:k, :k], gram[k:, k:] = np.diag(q1.sum(0)), np.diag(q2.sum(0))
        a, b = np.split(np.linalg.lstsq(gram, code.T @ x, rcond=None)[0], 2)
        bounds.append(_bound(_log_joint(x, a, b), q1, q2))
    return np.array(bounds), np.array(likelihood)


def _log_joint(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r""":math:`\log p(x, z_1, z_2)`, ``(n, k, k)``."""
    square = np.square(x[:, None, None] - a[:, None] - b).sum(-1)
    return -0.5 * square - np.log(2 * np.pi) - 2 * np.log(len(a))


def _bound(log_joint: np.ndarray, q1: np.ndarray, q2: np.ndarray) -> float:
    entropy = sum(-(q * np.log(np.maximum(q, 1e-300))).sum(1) for q in (q1, q2))
    return float((np.einsum("nij,ni,nj->n", log_joint, q1, q2) + entropy).mean())


def _softmax(logits: np.ndarray) -> np.ndarray:
    out: np.ndarray = np.exp(logits - logits.max(1, keepdims=True))
    return out / out.sum(1, keepdims=True)
