r"""Means settle and become normal, unless the tail is too heavy."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import stats as st
from torch.distributions import Bernoulli, Cauchy, Exponential

from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import stats
from groundstate.math.distributions.operations import draw as draws_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (1, 4, 16, 64, 256)
EXACT = (0.15866, 0.06670, 0.03328, 0.01663, 0.00831)
MEANS = 20_000


def dice(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Throws of a fair die."""
    return rng.integers(1, 7, shape).astype(np.float64)


@experiment("MAT-x-lln-clt", theme="mathematics", title="Means settle and become normal", slow=True)
def lln_clt(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\bar x_m \to \mu` where :math:`E|X| < \infty`, and
    :math:`\sqrt m(\bar x_m - \mu)/\sigma \to N(0, 1)` where the variance is finite, which is
    :math:`\sigma^2/m` for the mean.

    20,000 means of m draws of a die, an exponential and a Bernoulli variable. For the exponential the
    largest gap to the normal distribution function is known exactly. The mean of m Cauchy draws has the
    distribution of one. Residuals that are sums of m skewed errors lose their skewness like
    :math:`m^{-1/2}`.
    """
    key = Key.of(seed)
    one = torch.tensor(1.0).double()
    sources: dict[str, Any] = {
        "die": dice,
        "exponential": Exponential(one),
        "Bernoulli": Bernoulli(0.3 * one),
    }
    found = {
        name: [
            stats.standardized_means(source, m, MEANS, random_state=key.fold(name, m), **_known(name))
            for m in SIZES
        ]
        for name, source in sources.items()
    }  # fmt: skip
    gaps = {name: [f.ks for f in row] for name, row in found.items()}
    spread = [
        float(f.values.var()) for row in found.values() for f in row
    ]  # of the standardised mean: one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Unreliable)
        wild = [
            stats.standardized_means(Cauchy(0 * one, one), m, 4000, random_state=key.fold("C", m))
            for m in SIZES
        ]
    same = [
        float(st.kstest(f.values / math.sqrt(m) * f.std + f.mean, st.cauchy.cdf).pvalue)
        for f, m in zip(wild, SIZES)
    ]
    rng = key.fold("residuals").numpy()
    skews = [float(st.skew(rng.standard_exponential((40_000, m)).sum(1))) for m in SIZES[:4]]
    adjusted = float(np.min(stats.adjust_pvalues(same, "holm")))
    claims = [
        *(
            Claim.close(f"exponential: gap to the normal, m = {m}", gap, exact, tol=0.01)
            for m, gap, exact in zip(SIZES, gaps["exponential"], EXACT)
        ),
        Claim.at_most("variance of standardised means: largest error", max(abs(v - 1) for v in spread),
                      0.06),
        Claim.at_most("die and Bernoulli, m = 256: larger gap",
                      max(gaps["die"][-1], gaps["Bernoulli"][-1]), 0.04),
        Claim.above("Cauchy: means have the distribution of one draw, least p of five (Holm)", adjusted,
                    0.01),
        Claim.equal("Cauchy: flagged", [f.finite_mean for f in wild], [False] * 5),
        Claim.close("residuals: slope of log skewness on log m",
                    float(np.polyfit(np.log(SIZES[:4]), np.log(skews), 1)[0]), -0.5, tol=0.05),
    ]  # fmt: skip
    numbers = {"m": list(SIZES), "gap": gaps, "Cauchy p": same, "skewness": skews}
    n = 5000
    paths = {
        "die": stats.running_mean(dice((n,), key.fold("path").numpy())),
        "exponential": stats.running_mean(draws_of(Exponential(one), n, key.fold("path").torch()).numpy()),
        "Cauchy": stats.running_mean(draws_of(Cauchy(0 * one, one), n, key.fold("path").torch()).numpy()),
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 4)
        for ax, (name, path), limit in zip(axes[0], paths.items(), (3.5, 1.0, 0.0)):
            ax.semilogx(np.arange(1, n + 1), path, color=COLOURS[0])
            ax.axhline(limit, color="black", linewidth=0.7, linestyle=":")
            ax.set(title=f"running mean: {name}", xlabel="draws")
        axes[0, 3].loglog(SIZES, gaps["exponential"], "o-", color=COLOURS[0], label="exponential")
        axes[0, 3].loglog(SIZES, gaps["die"], "o-", color=COLOURS[1], label="die")
        axes[0, 3].loglog(SIZES, EXACT, ":", color="black", label="exact")
        axes[0, 3].set(title="gap to the normal", xlabel="m")
        axes[0, 3].legend()
        for ax, m in zip(axes[1], (1, 4, 64, 256)):
            q, values = found["exponential"][SIZES.index(m)].qq()
            ax.plot([-4, 4], [-4, 4], color=COLOURS[5], linewidth=0.8)
            ax.plot(q[::40], values[::40], ".", color=COLOURS[0], markersize=3)
            ax.set(title=f"exponential, m = {m}", xlabel="normal quantile", ylim=(-4, 7))

    return Result(claims, numbers, draw, size=(11.0, 5.4))


def _known(name: str) -> dict[str, float]:
    return {"mean": 3.5, "std": math.sqrt(35 / 12)} if name == "die" else {}
