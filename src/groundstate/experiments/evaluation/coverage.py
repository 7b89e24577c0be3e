r"""A 99 % interval holds 99 % only where its approximation does."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from scipy.stats import binom

from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.stats import mean_interval, proportion_interval

Method = Literal["wald", "wilson", "exact"]
CASES = ((30, 0.05), (100, 0.05), (1000, 0.05), (1000, 0.1))
WALD = (0.7853, 0.9625, 0.9834, 0.9876)
WILSON = (0.9844, 0.9885, 0.9889, 0.9902)


def covered(n: int, p: float, method: Method) -> float:
    """Exact chance that the interval holds p, a sum over all outcomes of any weight."""
    weight = binom.pmf(np.arange(n + 1), n, p)
    outcomes = np.flatnonzero(weight > 1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Unreliable)  # where Wald fails is what is looked for
        found = [proportion_interval(int(k), n, 0.99, method) for k in outcomes]
    return float(sum(weight[k] for k, i in zip(outcomes, found) if i.low <= p <= i.high))


@experiment(
    "EVA-X-coverage", theme="evaluation", title="Intervals hold what they promise if well chosen"
)
def coverage(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Wald's interval :math:`\hat p \pm z\sqrt{\hat p(1-\hat p)/n}` of an error rate trusts its own
    estimate of the spread, which few errors make too small: at 30 rows its 99 % are 79 %. Wilson's,
    which solves :math:`|\hat p - p| \le z\sqrt{p(1-p)/n}` for p, holds 98 % there. Of a mean over
    five rows, z in place of Student's t holds 88 % where 95 % are promised.

    Sums over all binomial outcomes, no sampling; for the means 40,000 draws of five normal rows.
    """
    table: dict[Method, list[float]] = {
        m: [covered(n, p, m) for n, p in CASES] for m in ("wald", "wilson", "exact")
    }
    rows = Key.of(seed).fold("means").numpy().standard_normal((40_000, 5))
    one = mean_interval(rows[0], method="normal")
    reach = {m: mean_interval(rows[0], method=m).high - one.estimate for m in ("t", "normal")}
    scale = float(rows[0].std(ddof=1))  # half widths are multiples of the row's own deviation
    off = np.abs(rows.mean(1)) / rows.std(1, ddof=1) * scale
    held = {m: float((off <= half).mean()) for m, half in reach.items()}
    claims = [
        *[
            Claim.close(f"Wald, n = {n}, p = {p}", v, e, tol=5e-5)
            for (n, p), v, e in zip(CASES, table["wald"], WALD)
        ],
        *[
            Claim.close(f"Wilson, n = {n}, p = {p}", v, e, tol=5e-5)
            for (n, p), v, e in zip(CASES, table["wilson"], WILSON)
        ],
        Claim.at_least("exact: least coverage", min(table["exact"]), 0.99),
        Claim.close("mean of five, t: 95 %", held["t"], 0.950, tol=0.004),
        Claim.close("mean of five, z: 95 %", held["normal"], 0.878, tol=0.006),
    ]
    sizes = np.unique(np.round(np.logspace(np.log10(20), 3, 12 if quick else 30)).astype(int))
    curves = {m: [covered(int(n), 0.05, m) for n in sizes] for m in table}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for (name, values), colour in zip(curves.items(), COLOURS):
            ax.semilogx(sizes, values, "o-", markersize=3, color=colour, label=str(name))
        ax.axhline(0.99, color="black", linestyle=":", linewidth=0.8)
        ax.set(xlabel="test rows", ylabel="coverage of the 99 % interval", title="true error .05")
        ax.legend()

    numbers = {
        "cases": [list(c) for c in CASES],
        **{str(k): v for k, v in table.items()},
        "means": held,
    }
    return Result(claims, numbers, draw, size=(6.5, 3.8))
