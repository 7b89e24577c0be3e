r"""A drug trial: check the chain from data to decision."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats as st

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

A_BEFORE = np.array([150, 145, 160, 155, 148, 152, 158, 150, 147.0])
A_AFTER = np.array([138, 132, 140, 142, 136, 142, 147, 135, 140.0])
B_BEFORE = np.array([148, 152, 145, 150, 146, 144, 155, 158, 153.0])
B_AFTER = np.array([146, 150, 143, 148, 145, 142, 154, 156, 152.0])
STATED = (143.25, 4.37, 20, 149.55, 3.10, 20)
LOOKED_UP = 1.61


def least_sd(seen: np.ndarray, mean: float, n: int) -> float:
    """The smallest standard deviation that n values with this mean can have, when some of them are known.

    The others then all lie at the value that the mean asks for.
    """
    rest = (n * mean - seen.sum()) / (n - len(seen))
    square = ((seen - mean) ** 2).sum() + (n - len(seen)) * (rest - mean) ** 2
    return math.sqrt(square / (n - 1))


@experiment("MAT-x-trial", theme="mathematics", title="From data to decision")
def trial(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Blood pressure after treatment, A against B: means 143.25 and 149.55, standard deviations 4.37
    and 3.10, 20 people each, so :math:`t = (143.25 - 149.55)/\sqrt{4.37^2/20 + 3.10^2/20} = -5.26`,
    which rejects equal means. A t of 1.61 looked up in its place (p = .058 on one side) would not: one
    wrong number flips the decision. Nine people of each group are visible, and with them the stated
    deviations are impossible. Nothing is random.
    """
    pooled = stats.ttest_from_stats(*STATED, equal_var=True)
    welch = stats.ttest_from_stats(*STATED)
    wrong = float(st.t.sf(LOOKED_UP, 38))
    change = stats.ttest(A_BEFORE - A_AFTER, B_BEFORE - B_AFTER)
    paired = stats.ttest(A_BEFORE, A_AFTER, paired=True)
    visible = stats.ttest(A_AFTER, B_AFTER)
    least = least_sd(A_AFTER, STATED[0], 20), least_sd(B_AFTER, STATED[3], 20)
    claims = [
        Claim.close("t of the stated summaries", pooled.statistic, -5.2585, tol=1e-4),
        Claim.close("p, in 1e-6", pooled.pvalue * 1e6, 5.906, tol=0.01),
        Claim.equal("equal means are rejected", pooled.reject(), True),
        Claim.close("Welch's degrees of freedom", float(welch.df), 34.2585, tol=1e-4),  # type: ignore[arg-type]
        Claim.close("p of 1.61, one side", wrong, 0.0578, tol=1e-4),
        Claim.equal("with 1.61 they would not be", wrong > 0.05, True),
        Claim.close("change scores: Welch's t", change.statistic, 9.0504, tol=1e-4),
        Claim.close("change scores: degrees of freedom", float(change.df), 8.31, tol=0.01),  # type: ignore[arg-type]
        Claim.close("change scores: p, in 1e-5", change.pvalue * 1e5, 1.39, tol=0.01),
        Claim.close("A before and after, paired t", paired.statistic, 10.5373, tol=1e-4),
        Claim.close("visible people only: t", visible.statistic, -4.226499, tol=1e-6),
        Claim.close("A: least possible standard deviation", least[0], 4.81, tol=0.005),
        Claim.close("B: least possible standard deviation", least[1], 3.34, tol=0.005),
        Claim.equal("both stated ones are below", least[0] > 4.37 and least[1] > 3.10, True),
    ]
    numbers = {"t": pooled.statistic, "p": pooled.pvalue, "interval": list(pooled.interval or ()),
               "change": [change.statistic, change.pvalue], "least sd": list(least)}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        t = np.linspace(-6.5, 6.5, 400)
        left.plot(t, st.t.pdf(t, 38), color=COLOURS[5])
        left.fill_between(t, st.t.pdf(t, 38), where=abs(t) > st.t.ppf(0.975, 38), color=COLOURS[4],
                          alpha=0.3)  # fmt: skip
        for value, colour in ((pooled.statistic, COLOURS[0]), (LOOKED_UP, COLOURS[1])):
            left.axvline(value, color=colour, label=f"t = {value:.2f}")
        left.set(title="t with 38 degrees of freedom")
        left.legend()
        for ax, before, after, name in (
            (middle, A_BEFORE, A_AFTER, "A"),
            (right, B_BEFORE, B_AFTER, "B"),
        ):
            for one, other in zip(before, after):
                ax.plot([0, 1], [one, other], "o-", color=COLOURS[0], linewidth=0.8, markersize=3)
            ax.set(title=f"{name}: before and after", xticks=[0, 1], xticklabels=["before", "after"],
                   ylim=(130, 162))  # fmt: skip

    return Result(claims, numbers, draw, size=(10.5, 3.3))
