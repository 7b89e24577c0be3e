r"""Distributions arise by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats as st

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.distributions import constructions as made

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPEATS = 20
LISTED = {10: 0.0864089, 100: 0.0076070, 1000: 0.00075154}


@experiment("MAT-x-laws", theme="mathematics", title="Distributions arise by construction")
def laws(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Sums of tosses are binomial, column sums of one-hot rows multinomial, failures before the r-th
    success negative binomial, :math:`\mathrm{Bin}(n, \lambda/n)` tends to Poisson(λ) with total
    variation that falls like 1/n, gaps of a Poisson process are exponential, Student's t tends to the
    normal distribution, :math:`1/Z^2` is Lévy's, and :math:`n! \sim \sqrt{2\pi n}(n/e)^n`. Each is
    simulated 10,000 times and tested against its distribution; over a hundred repeats the p values are
    uniform.
    """
    key = Key.of(seed)
    found = {
        "binomial": made.binomial(12, 0.3, random_state=key.fold("binomial")),
        "multinomial": made.multinomial(4, [0.5, 0.3, 0.2], random_state=key.fold("multinomial")),
        "negative binomial": made.negative_binomial(3, 0.4, random_state=key.fold("nbinom")),
        "Poisson": made.poisson(3.0, 100_000, random_state=key.fold("poisson")),
        "exponential": made.exponential(2.0, 5000.0, random_state=key.fold("gaps")),
        "Lévy": made.levy(random_state=key.fold("levy")),
        "Student": made.normal_from_t(5.0, random_state=key.fold("t")),
    }
    p = {name: one.pvalue for name, one in found.items()}
    again = (
        [made.binomial(12, 0.3, 2500, key.fold("again", i)).pvalue for i in range(REPEATS)]
        + [made.negative_binomial(3, 0.4, 2500, key.fold("nb", i)).pvalue for i in range(REPEATS)]
        + [made.levy(2500, key.fold("l", i)).pvalue for i in range(REPEATS)]
        + [made.exponential(2.0, 1250.0, key.fold("e", i)).pvalue for i in range(REPEATS)]
        + [
            made.multinomial(4, [0.5, 0.3, 0.2], 2500, key.fold("m", i)).pvalue
            for i in range(REPEATS)
        ]
    )
    even = float(st.kstest(again, "uniform").pvalue)
    distance = [made.poisson(3.0, n, 10).distance for n in LISTED]
    gaps = [made.normal_from_t(df, 10).distance for df in (1, 2, 5, 30, 100)]
    claims = [
        Claim.above("p values of 100 repeats are uniform: p of that", even, 0.01),
        Claim.above("least p of the seven pictured, adjusted for seven", 7 * min(p.values()), 0.002),
        *(
            Claim.close(f"Poisson: total variation, n = {n}", value, listed, tol=1e-6)
            for (n, listed), value in zip(LISTED.items(), distance)
        ),
        Claim.equal("t to normal: the gap falls", gaps == sorted(gaps, reverse=True), True),
        Claim.close("Stirling: 10!", made.stirling(10) / 3628800, 0.99170, tol=1e-5),
        Claim.close("multinomial (2, 1, 1) of 4", float(found["multinomial"].distribution.pmf([2, 1, 1])),
                    0.18, tol=1e-12),
        Claim.close("negative binomial: P(2 failures)",
                    float(found["negative binomial"].distribution.pmf(2)), 0.13824, tol=1e-12),
    ]  # fmt: skip
    numbers = {"p": p, "uniform": even, "total variation": distance, "t gap": gaps}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 4).ravel()
        for ax, name in zip(axes, ("binomial", "negative binomial", "Poisson")):
            one = found[name]
            k = np.arange(int(one.draws.max()) + 1)
            ax.bar(k - 0.2, np.bincount(one.draws) / len(one.draws), 0.4, color=COLOURS[0])
            ax.bar(k + 0.2, one.distribution.pmf(k), 0.4, color=COLOURS[1])
            ax.set(title=name)
        for ax, name, top in zip(axes[3:], ("exponential", "Lévy", "Student"), (3.0, 12.0, 4.0)):
            one = found[name]
            low = -top if name == "Student" else 0.0
            x = np.linspace(low + 1e-3, top, 200)
            kept = one.draws[(one.draws > low) & (one.draws < top)]
            counts, edges = np.histogram(kept, 50)
            density = counts / len(one.draws) / np.diff(edges)
            ax.stairs(density, edges, fill=True, color=COLOURS[0], alpha=0.4)
            ax.plot(x, one.distribution.pdf(x), color=COLOURS[1])
            ax.set(title=name)
        t = np.linspace(-3, 3, 301)
        for lam, colour in zip((0.5, 1, 2, 3), COLOURS):
            axes[6].plot(t, st.laplace.pdf(t, scale=1 / lam), color=colour, label=f"λ = {lam}")
        axes[6].set(title="Laplace: (λ/2) exp(−λ|t|)")
        axes[6].legend()
        logits = np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
        axes[7].bar(np.arange(5), 1 / (1 + np.exp(-logits)), color=COLOURS[2])
        axes[7].set(title="logit to P(y = 1)", xticks=range(5), xticklabels=logits, ylim=(0, 1))

    return Result(claims, numbers, draw, size=(11.0, 5.2))
