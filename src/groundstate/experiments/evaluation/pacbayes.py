r"""The PAC-Bayes bound along training, and what an informed prior is worth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from groundstate.compute.random import Key
from groundstate.evaluate import pac_bayes
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, I64, Rng

D, N, S = 20, 1000, 0.1
STEPS = (0, 1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200, 400)
RATE = 0.5


def rows(rng: Rng, truth: F64, n: int) -> tuple[F64, I64]:
    """Standard normal rows, labels by the logistic distribution."""
    X = rng.standard_normal((n, D))
    return X, (rng.random(n) < expit(X @ truth)).astype(np.int64)


def path(X: F64, y: I64, start: F64) -> list[F64]:
    """Weights after so many gradient steps on the logistic loss, ``(d + 1,)`` each."""
    A, theta, found = np.column_stack([X, np.ones(len(X))]), start.copy(), []
    for step in range(max(STEPS) + 1):
        if step in STEPS:
            found.append(theta.copy())
        theta = theta - RATE * A.T @ (expit(A @ theta) - y) / len(y)
    return found


def linear(theta: F64) -> Any:
    """The classifier of these weights, as the bound reads it."""
    return SimpleNamespace(coef_=theta[None, :-1], intercept_=theta[-1:], classes_=np.arange(2))


def gibbs(X: F64, y: I64, theta: F64, s: float) -> float:
    """Error on rows when weights are drawn from N(θ, s²), in closed form."""
    A = np.column_stack([X, np.ones(len(X))])
    margin = np.where(y == 1, 1.0, -1.0) * (A @ theta)
    return float(ndtr(-margin / (s * np.linalg.norm(A, axis=1))).mean())


@experiment(
    "EVA-X-pacbayes",
    theme="evaluation",
    title="The PAC-Bayes bound is U-shaped along training",
    slow=True,
)
def pacbayes(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\mathrm{kl}(\hat R(Q)\|R(Q)) \le (\mathrm{KL}(Q\|P) + \log\frac{n+1}\delta)/n` for
    :math:`Q = N(\theta, s^2)` and :math:`P = N(\theta_0, s^2)`. Training lowers the first and raises
    :math:`\mathrm{KL} = |\theta-\theta_0|^2/2s^2`: at fixed s the bound has its minimum before training
    ends, at the best s of a grid it becomes flat. A prior learned from other rows starts near and
    pays little.

    Logistic energy in 20 dimensions, 1,000 rows, s = .1; the informed prior from 1,000 other rows;
    the true Gibbs risk from 20,000 rows.
    """
    key = Key.of(seed)
    truth = key.fold("truth").numpy().standard_normal(D)
    truth *= 3 / np.linalg.norm(truth)
    X, y = rows(key.fold("rows").numpy(), truth, N)
    Z, t = rows(key.fold("test").numpy(), truth, 20_000)
    other = rows(key.fold("prior").numpy(), truth, N)
    zero = np.zeros(D + 1)
    informed = path(*other, zero)[-1]
    runs = {
        "s = .1, prior at 0": (path(X, y, zero), zero, S, S),
        "s tuned, prior at 0": (path(X, y, zero), zero, "grid", "grid"),
        "s = .1, prior from other rows": (path(X, y, informed), informed, S, S),
    }
    curves: dict[str, F64] = {}
    slack = np.inf
    for name, (thetas, start, s, s0) in runs.items():
        found = [
            pac_bayes(linear(theta), X, y, prior=start, posterior=s, prior_std=s0, gibbs="exact")
            for theta in thetas
        ]
        true = [gibbs(Z, t, theta, float(f.posterior_std)) for theta, f in zip(thetas, found)]
        curves[name] = np.array([[f.bound, f.risk, f.kl, r] for f, r in zip(found, true)])
        slack = min(slack, float((curves[name][:, 0] - curves[name][:, 3]).min()))
    fixed, tuned, prior = curves.values()
    best = int(fixed[:, 0].argmin())
    gain = float(fixed[:, 0].min() - prior[:, 0].min())
    claims = [
        Claim.between("s fixed: looks before and after the minimum", best, 1, len(STEPS) - 2),
        Claim.above(
            "s fixed: rise of the bound after it", float(fixed[-1, 0] - fixed[best, 0]), 0.01
        ),
        Claim.above(
            "s fixed: least rise of KL from look to look", float(np.diff(fixed[:, 2]).min()), 0.0
        ),
        Claim.below(
            "s tuned: end over the least bound", float(tuned[-1, 0] / tuned[:, 0].min()), 1.1
        ),
        Claim.at_least("fall of the minimum by an informed prior", gain, 0.08),
        Claim.at_least("least bound less true Gibbs risk", slack, 0.0),
    ]
    numbers = {
        "steps": list(STEPS),
        **{name: c[:, 0].tolist() for name, c in curves.items()},
        "minimum": {name: float(c[:, 0].min()) for name, c in curves.items()},
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 3, sharey=True)
        at = np.array(STEPS) + 1
        for ax, (name, c) in zip(axes, curves.items()):
            ax.semilogx(at, c[:, 0], "o-", markersize=3, color=COLOURS[1], label="bound")
            ax.semilogx(at, c[:, 3], color=COLOURS[2], label="true Gibbs risk")
            ax.semilogx(at, c[:, 1], "--", color=COLOURS[0], label="Gibbs risk on the rows")
            ax.semilogx(at, c[:, 2] / N, ":", color=COLOURS[5], label="KL / n")
            ax.set(title=name, xlabel="steps + 1", ylim=(0, 0.8))
        axes[0].legend()

    return Result(claims, numbers, draw, size=(11.0, 3.6))
