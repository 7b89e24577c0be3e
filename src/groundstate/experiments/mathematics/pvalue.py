r"""p is uniform under the null, and power grows with rows and effect."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats as st

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EFFECTS = (0.0, 0.2, 0.5, 0.8)
ROWS = (10, 20, 40)
TESTS = 10_000


@experiment("MAT-x-pvalue", theme="mathematics", title="p values and power")
def pvalue(seed: int = 0, *, quick: bool = False) -> Result:
    r"""10,000 pooled t tests of two groups of n normal values whose means differ by d standard
    deviations. Under :math:`d = 0` p is uniform, so 5 % of the tests reject at 5 %; otherwise the share
    that rejects is the power, :math:`P(|T'| > t_{.975})` for a noncentral T' with noncentrality
    :math:`d\sqrt{n/2}`.
    """
    key = Key.of(seed)
    p: dict[tuple[float, int], np.ndarray] = {}
    for d in EFFECTS:
        for n in ROWS:
            x = key.fold("rows", round(10 * d), n).numpy().standard_normal((TESTS, 2, n))
            x[:, 0] += d
            p[d, n] = np.asarray(st.ttest_ind(x[:, 0], x[:, 1], axis=1).pvalue)
    x = key.fold("same").numpy().standard_normal((3, 2, 20))
    same = max(
        abs(stats.ttest(a, b, equal_var=True).pvalue - st.ttest_ind(a, b).pvalue) for a, b in x
    )
    shares = {at: float((values <= 0.05).mean()) for at, values in p.items()}
    power = {(d, n): stats.power_ttest(d, n) for d in EFFECTS for n in ROWS}
    off = [
        abs(shares[at] - power[at]) / math.sqrt(power[at] * (1 - power[at]) / TESTS) for at in power
    ]
    uniform = float(st.kstest(p[0.0, 20], "uniform").pvalue)
    claims = [
        Claim.above("no effect: p is uniform, p of a Kolmogorov-Smirnov test", uniform, 0.01),
        Claim.close("no effect: share of p ≤ .05", shares[0.0, 20], 0.05, tol=0.007),
        Claim.close("power at d = .8, n = 20", power[0.8, 20], 0.693404, tol=1e-6),
        Claim.at_most("shares against noncentral t, in standard errors, largest of twelve", max(off), 4.0),
        Claim.equal("power grows with the effect",
                    all(shares[a, n] < shares[b, n] for n in ROWS for a, b in pairwise(EFFECTS)),
                    True),
        Claim.equal("and with the rows",
                    all(shares[d, 10] < shares[d, 20] < shares[d, 40] for d in EFFECTS[1:]), True),
        Claim.at_most("ttest against scipy", same, 1e-12),
    ]  # fmt: skip
    numbers = {"n": list(ROWS), "rejected": {str(d): [shares[d, n] for n in ROWS] for d in EFFECTS},
               "power": {str(d): [power[d, n] for n in ROWS] for d in EFFECTS}, "uniform": uniform}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        for ax, d in ((left, 0.0), (middle, 0.5)):
            ax.hist(p[d, 20], 40, range=(0, 1), color=COLOURS[0])
            ax.axvline(0.05, color=COLOURS[4], linewidth=0.8)
            ax.set(title=f"p values, effect {d:g}, n = 20", xlabel="p")
        n = np.arange(3, 101)
        for d, colour in zip(EFFECTS, COLOURS):
            right.plot(
                n, [stats.power_ttest(d, float(k)) for k in n], color=colour, label=f"d = {d:g}"
            )
            right.plot(ROWS, [shares[d, k] for k in ROWS], "o", color=colour)
        right.set(title="share rejected at 5 %", xlabel="rows per group", ylim=(0, 1))
        right.legend()

    return Result(claims, numbers, draw, size=(10.5, 3.3))
