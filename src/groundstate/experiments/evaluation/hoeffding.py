r"""Hoeffding's inequality holds for every distribution, and is loose for most."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.stats.bounds import hoeffding_tail

P, N = 0.3, 100


@experiment("EVA-X-hoeffding", theme="evaluation", title="Hoeffding's bound holds and is loose")
def hoeffding(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`P(|\hat R - R| \ge \varepsilon) \le 2e^{-2n\varepsilon^2}` for the mean of n independent
    losses in [0, 1]. It uses nothing about their distribution, so a Bernoulli distribution of small
    variance is far inside.

    100,000 test sets of 100 rows for a model that errs on 30 % of all rows; ε = 0.1 and others.
    """
    draws = 20_000 if quick else 100_000
    errors = Key.of(seed).fold("tests").numpy().binomial(N, P, draws)
    off = np.abs(errors - round(P * N))  # whole numbers: the edge counts
    steps = np.arange(1, 26)
    tail = np.array([float((off >= k).mean()) for k in steps])
    bound = np.array([hoeffding_tail(N, k / N) for k in steps])
    k = np.arange(N + 1)
    exact = float(binom.pmf(k, N, P)[np.abs(k - round(P * N)) >= 10].sum())
    claims = [
        Claim.close("frequency at ε = .1", tail[9], 0.037, tol=0.003),
        Claim.close("frequency less the exact tail", tail[9] - exact, 0.0, tol=0.003),
        Claim.close("bound at ε = .1", bound[9], 0.2707, tol=5e-5),
        Claim.at_most("largest frequency less bound over ε", float((tail - bound).max()), 0.0),
        Claim.above("bound over frequency at ε = .1", bound[9] / tail[9], 5.0),
    ]
    numbers = {"frequency": tail[9], "exact": exact, "bound": bound[9]}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        eps = steps / N
        left.semilogy(
            eps, np.maximum(tail, 1e-6), "o-", markersize=3, color=COLOURS[0], label="frequency"
        )
        left.semilogy(eps, bound, color=COLOURS[1], label="$2e^{-2nε^2}$")
        left.set(xlabel="ε", ylabel="chance of being off by ε", ylim=(1e-6, 2))
        left.legend()
        right.hist(errors / N, np.arange(5, 56) / N - 0.005, density=True, color=COLOURS[0])
        for side in (-0.1, 0.1):
            right.axvline(P + side, color=COLOURS[1])
        right.set(xlabel="error on a test set", title="inside: all but 3.7 %")

    return Result(claims, numbers, draw)
