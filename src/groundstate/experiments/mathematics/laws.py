r"""Distributions arise by construction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats as st

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.distributions import constructions as made
from groundstate.math.stats.multiple import adjust_pvalues

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPEATS = 20
LISTED = {10: 0.0864089, 100: 0.0076070, 1000: 0.00075154}


def _together(p: list[float]) -> float:
    """One p value of several independent ones, by Fisher's sum of logarithms."""
    return float(st.combine_pvalues(np.maximum(p, 1e-300), "fisher").pvalue)


@experiment(
    "MAT-x-laws", theme="mathematics", title="Distributions arise by construction", slow=True
)
def laws(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Sums of tosses are binomial, column sums of one-hot rows multinomial, failures before the r-th
    success negative binomial, :math:`\mathrm{Bin}(n, \lambda/n)` tends to Poisson(λ) with total
    variation that falls like 1/n, gaps of a Poisson process are exponential, Student's t tends to the
    normal distribution, :math:`1/Z^2` is Lévy's, and :math:`n! \sim \sqrt{2\pi n}(n/e)^n`.

    Each is simulated 20 times with 10,000 draws and tested against its distribution (χ² or
    Kolmogorov-Smirnov). Where a distribution is right, one such p falls below .01 in one draw of a
    hundred, so that seven of them in five seeds would do so with probability :math:`1 - .99^{35} = .3`.
    The 20 are therefore judged together (Fisher's :math:`-2\sum\log p \sim \chi^2_{40}`), the seven
    distributions adjusted for being seven (Holm), and all 140 values must be uniform. That the test is
    sharp: gaps that are 5 % too long fail it.
    """
    key = Key.of(seed)
    sources: dict[str, Callable[[Key], Any]] = {
        "binomial": lambda key: made.binomial(12, 0.3, random_state=key),
        "multinomial": lambda key: made.multinomial(4, [0.5, 0.3, 0.2], random_state=key),
        "negative binomial": lambda key: made.negative_binomial(3, 0.4, random_state=key),
        "Poisson": lambda key: made.poisson(3.0, 100_000, random_state=key),
        "exponential": lambda key: made.exponential(2.0, 5000.0, random_state=key),
        "Lévy": lambda key: made.levy(random_state=key),
        "Student": lambda key: made.normal_from_t(5.0, random_state=key),
    }
    draws = {
        name: [source(key.fold(name, i)) for i in range(REPEATS)]
        for name, source in sources.items()
    }
    found = {name: several[0] for name, several in draws.items()}
    p = {name: [one.pvalue for one in several] for name, several in draws.items()}
    together = {name: _together(values) for name, values in p.items()}
    adjusted = float(np.min(adjust_pvalues(list(together.values()), "holm")))
    even = float(st.kstest(np.concatenate(list(p.values())), "uniform").pvalue)
    long = [
        st.kstest(1.05 * one.draws, one.distribution.cdf).pvalue for one in draws["exponential"]
    ]
    distance = [made.poisson(3.0, n, 10).distance for n in LISTED]
    gaps = [made.normal_from_t(df, 10).distance for df in (1, 2, 5, 30, 100)]
    claims = [
        Claim.above("least p of seven distributions, 20 draws each together, adjusted", adjusted, 0.01),
        Claim.above("all 140 p values are uniform: p of that", even, 0.01),
        Claim.below("gaps 5 % too long, 20 draws together: p", _together(long), 1e-6),
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
    numbers = {
        "p": together,
        "adjusted": adjusted,
        "uniform": even,
        "total variation": distance,
        "t gap": gaps,
    }

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
