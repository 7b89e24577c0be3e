r"""Descent if and only if the step is shorter than 2/L; the bound is best at 1/L."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.optim.smoothness import (
    descent_bound,
    is_descent,
    lipschitz,
    softmax_lipschitz,
)

F64 = NDArray[np.float64]
A = np.array([1.0, 10.0])
AFTER_50 = {0.05: 2.96e-3, 0.1: 1.33e-5, 0.15: 4.4e-8, 0.19: 1.3e-4, 0.2: 5.0, 0.21: 6.9e4}
DIGITS = {0.05: 3, 0.1: 3, 0.15: 2, 0.19: 2, 0.2: 2, 0.21: 2}  # as they are quoted
SWEEP = np.linspace(0.005, 0.199, 60)
RATES = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)  # of the bound 1/L


def bowl(step: float, steps: int) -> F64:
    r"""Values of :math:`\tfrac12x^\top\operatorname{diag}(1, 10)x` from (1, 1) on."""
    x = (1 - step * A[:, None]) ** np.arange(steps + 1)  # descent is a power of I − αA
    found: F64 = 0.5 * A @ x**2
    return found


class Softmax:
    """Mean cross-entropy of a linear softmax of three classes, with its gradient."""

    def __init__(self, key: Key, rows: int = 200) -> None:
        generator = key.torch()
        self.y = torch.arange(rows) % 3
        centres = torch.tensor([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]], dtype=torch.float64)
        noise = torch.randn(rows, 2, generator=generator, dtype=torch.float64)
        self.X = functional.pad(centres[self.y] + noise, (0, 1), value=1.0)  # bias last
        self.hot = functional.one_hot(self.y, 3).double()
        self.L = softmax_lipschitz(self.X)

    def __call__(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient at W ``(..., 3, 3)``."""
        logp = torch.log_softmax(self.X @ W.mT, -1)  # (..., N, K)
        value = -(logp * self.hot).sum(-1).mean(-1)
        return value, (logp.exp() - self.hot).mT @ self.X / len(self.X)

    def loss(self, W: Tensor) -> Tensor:
        return self(W)[0]

    def minimum(self) -> float:
        W = torch.zeros(3, 3, dtype=torch.float64)
        for _ in range(3000):
            W = W - 1.9 / self.L * self(W)[1]
        return float(self(W)[0])

    def iterations(self, steps: Tensor, goal: float, most: int = 3000) -> list[int]:
        """Steps from 0 until the value is at most ``goal``, for many step lengths at once."""
        W = torch.zeros(len(steps), 3, 3, dtype=torch.float64)
        taken = torch.full((len(steps),), most)
        for t in range(most):
            value, gradient = self(W)
            taken[(value <= goal) & (taken == most)] = t
            if bool((taken < most).all()):
                break
            W = W - steps[:, None, None] * gradient
        return [int(t) for t in taken]


def lemma(f: Softmax, key: Key, pairs: int) -> float:
    r"""Largest :math:`f(b) - f(a) - \nabla f(a)^\top(b - a) - \tfrac L2\|b - a\|^2` over random pairs."""
    generator, worst = key.torch(), -np.inf
    for at in range(0, pairs, 1000):
        many = min(1000, pairs - at)
        size = 10 ** (4 * torch.rand(2, many, 1, 1, generator=generator, dtype=torch.float64) - 3)
        a, d = size * torch.randn(2, many, 3, 3, generator=generator, dtype=torch.float64)
        (fa, ga), (fb, _) = f(a), f(a + d)
        bound = fa + (ga * d).sum((1, 2)) + f.L / 2 * d.square().sum((1, 2))
        worst = max(worst, float((fb - bound).max()))
    return worst


@experiment("NEU-X-step", theme="neural", title="Descent exactly for steps below 2/L", slow=True)
def step(seed: int = 0, *, quick: bool = False) -> Result:
    r"""When gradients differ by at most :math:`L\|a - b\|`, a step α along −∇f ends at most at
    :math:`f - (\alpha - \tfrac12L\alpha^2)\|\nabla f\|^2`: below f for :math:`\alpha < 2/L`, lowest for
    1/L. On :math:`\tfrac12x^\top\operatorname{diag}(1, 10)x` this is sharp: at α = 0.2 the path stalls,
    beyond it explodes. The number of steps as a function of α is a U.

    Softmax regression on 200 rows: L by :math:`\lambda_{max}(X^\top X)/2N`, the lemma on 10,000 pairs,
    steps until the gap is below 1e-4.
    """
    key = Key.of(seed)
    end = {alpha: float(bowl(alpha, 50)[-1]) for alpha in AFTER_50}
    need = np.array([int(np.argmax(bowl(alpha, 5000) < 1e-6)) for alpha in SWEEP])
    first = bowl(0.1, 1)
    f = Softmax(key.fold("rows"))
    low = f.minimum()
    steps = torch.tensor(RATES, dtype=torch.float64) / f.L
    taken = f.iterations(steps, low + 1e-4)
    fastest = int(np.argmin(taken))
    gap = lemma(f, key.fold("pairs"), 2000 if quick else 10_000)
    local = lipschitz(f.loss, torch.zeros(3, 3, dtype=torch.float64))
    descending = [alpha for alpha in AFTER_50 if is_descent(bowl(alpha, 50).tolist())]
    low_at = int(need.argmin())
    is_u = is_descent(need[: low_at + 1].tolist()) and is_descent(need[low_at:][::-1].tolist())
    claims = [
        *[Claim.close(f"α = {a:g}: value after 50 steps, relative", end[a] / expected, 1,
                      tol=0.5 * 10.0 ** (1 - DIGITS[a]))
          for a, expected in AFTER_50.items()],
        Claim.close("α = 0.1: value after one step", float(first[1]), 0.405, tol=1e-9),
        Claim.close("α = 0.1: its bound", descent_bound(5.5, 101.0, 10.0, 0.1), 0.45, tol=1e-9),
        Claim.equal("which of the six paths descend", descending, [0.05, 0.1, 0.15, 0.19, 0.2]),
        Claim.equal("quadratic: steps fall, then rise with α", is_u, True),
        Claim.close("quadratic: fastest α", float(SWEEP[low_at]), 2 / 11, tol=0.01),
        Claim.at_most("softmax: largest violation of the lemma", gap, 1e-12),
        Claim.at_most("softmax: curvature at 0 over L", local / f.L, 1.0),
        Claim.above("softmax: steps at the shortest α over the least", taken[0] / taken[fastest], 1.0),
        Claim.above("softmax: steps at the longest α over the least", taken[-1] / taken[fastest], 1.0),
    ]  # fmt: skip
    numbers = {"after 50": {str(a): v for a, v in end.items()}, "quadratic": need.tolist(),
               "softmax": taken, "L": f.L, "lemma": gap}  # fmt: skip

    def draw(figure: Figure) -> None:
        paths, sweep, soft = figure.subplots(1, 3)
        for alpha, colour in zip(AFTER_50, COLOURS):
            paths.semilogy(bowl(alpha, 50), color=colour, label=f"α = {alpha:g}")
        paths.set(xlabel="step", ylabel="value", ylim=(1e-8, 1e5), title="diag(1, 10)")
        sweep.semilogy(SWEEP, need, color=COLOURS[0])
        for at, name in ((0.1, "1/L"), (0.2, "2/L")):
            sweep.axvline(at, color=COLOURS[5], linestyle=":", linewidth=1)
            sweep.text(at, need.max(), f" {name}", va="top", fontsize=8)
        sweep.set(xlabel="α", title="steps to 1e-6")
        soft.loglog(RATES, taken, "o-", color=COLOURS[2])
        soft.set(xlabel="α L", title="softmax: steps to a gap of 1e-4")
        paths.legend()

    return Result(claims, numbers, draw, size=(10.0, 3.4))
