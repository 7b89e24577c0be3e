r"""Where distributions come from: each construction simulated, next to the distribution it tends to.

Every function returns a :class:`Construction`: draws of the construction, the distribution, and the
distance between them: total variation for counts, Kolmogorov's for real values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Construction(Displayed):
    """A simulated construction and its distribution.

    Attributes
    ----------
    name : what is constructed
    draws : ``(n,)`` or ``(n, K)``
    distribution : of SciPy
    distance : total variation of the counts, or the largest gap of distribution functions
    pvalue : of the χ² or Kolmogorov-Smirnov test that the draws have that distribution
    """

    name: str
    draws: Any
    distribution: Any
    distance: float
    pvalue: float

    def _facts(self) -> dict[str, Any]:
        return {"name": self.name, "distance": self.distance, "p": self.pvalue}


def binomial(
    n: int, p: float, size: int = 10_000, random_state: Key | RandomState = 0
) -> Construction:
    r"""The number of heads in n tosses: a sum of n Bernoulli variables is Bin(n, p).

    >>> binomial(5, 0.3).pvalue > 0.001
    True
    """
    tosses = Key.of(random_state).numpy().random((size, n)) < p
    return _counts("sum of Bernoulli", tosses.sum(1), scipy.stats.binom(n, p))


def multinomial(
    n: int, probs: Any, size: int = 10_000, random_state: Key | RandomState = 0
) -> Construction:
    """Column sums of n one-hot rows are multinomial; the distance is over whole vectors of counts.

    >>> multinomial(3, [0.5, 0.3, 0.2]).pvalue > 0.001
    True
    """
    p = np.asarray(probs, np.float64)
    if p.ndim != 1 or (p < 0).any() or not math.isclose(p.sum(), 1.0, abs_tol=1e-9):
        raise ValueError("probs must be a list of probabilities that sum to 1")
    label = Key.of(random_state).numpy().choice(len(p), size=(size, n), p=p)
    sums = np.eye(len(p), dtype=np.int64)[label].sum(1)  # (size, K)
    code = sums @ (n + 1) ** np.arange(len(p))
    every = np.stack(np.meshgrid(*[np.arange(n + 1)] * len(p), indexing="ij"), -1)
    every = every.reshape(-1, len(p))
    every = every[every.sum(1) == n]
    exact = scipy.stats.multinomial(n, p).pmf(every)
    index = {c: i for i, c in enumerate((every @ (n + 1) ** np.arange(len(p))).tolist())}
    seen = np.bincount([index[c] for c in code.tolist()], minlength=len(every))
    found = _compare(seen, exact)
    return Construction("one-hot column sums", sums, scipy.stats.multinomial(n, p), *found)


def negative_binomial(
    r: int, p: float, size: int = 10_000, random_state: Key | RandomState = 0
) -> Construction:
    """Failures before the r-th success, tossed one by one; r = 1 is the shifted geometric distribution.

    >>> negative_binomial(3, 0.4).pvalue > 0.001
    True
    """
    rng = Key.of(random_state).numpy()
    failures = np.zeros(size, np.int64)
    successes = np.zeros(size, np.int64)
    while (open_ := successes < r).any():
        hit = rng.random(size) < p
        successes += open_ & hit
        failures += open_ & ~hit
    return _counts("failures before success", failures, scipy.stats.nbinom(r, p))


def poisson(
    rate: float, n: int, size: int = 10_000, random_state: Key | RandomState = 0
) -> Construction:
    r"""Bin(n, λ/n) tends to Poisson(λ): the distance is exact, :math:`\tfrac12\sum_k|b_k - p_k|`, and falls
    like 1/n.

    >>> round(poisson(3.0, 100).distance, 7)
    0.007607
    """
    if not 0 < rate <= n:
        raise ValueError(f"the rate lies between 0 and n, got rate={rate} and n={n}")
    draws = Key.of(random_state).numpy().binomial(n, rate / n, size)
    limit = scipy.stats.poisson(rate)
    k = np.arange(n + 1)
    gap = np.abs(scipy.stats.binom(n, rate / n).pmf(k) - limit.pmf(k)).sum() + limit.sf(n)
    return Construction("many rare events", draws, limit, float(gap) / 2, _counts(
        "", draws, limit).pvalue)  # fmt: skip


def exponential(
    rate: float, horizon: float = 1e4, random_state: Key | RandomState = 0
) -> Construction:
    """Gaps between points strewn evenly over a line, Poisson many, are exponential.

    >>> exponential(2.0).pvalue > 0.001
    True
    """
    rng = Key.of(random_state).numpy()
    points = np.sort(rng.random(rng.poisson(rate * horizon)) * horizon)
    return _real("gaps of a Poisson process", np.diff(points), scipy.stats.expon(scale=1 / rate))


def normal_from_t(
    df: float, size: int = 10_000, random_state: Key | RandomState = 0
) -> Construction:
    r"""Student's t tends to the normal distribution: the distance is exact,
    :math:`\sup_x|F_{df}(x) - \Phi(x)|`.

    >>> [round(normal_from_t(df, 10).distance, 4) for df in (1, 10, 100)]
    [0.1256, 0.0155, 0.0016]
    """
    rng = Key.of(random_state).numpy()
    draws = rng.standard_normal(size) / np.sqrt(rng.chisquare(df, size) / df)
    x = np.linspace(-10, 10, 20_001)
    gap = np.abs(scipy.stats.t(df).cdf(x) - scipy.stats.norm.cdf(x)).max()
    own = _real("", draws, scipy.stats.t(df)).pvalue
    return Construction(
        "normal over its estimated scale", draws, scipy.stats.norm(), float(gap), own
    )


def levy(size: int = 10_000, random_state: Key | RandomState = 0) -> Construction:
    """1/Z² of a normal Z has Lévy's distribution.

    >>> levy().pvalue > 0.001
    True
    """
    z = Key.of(random_state).numpy().standard_normal(size)
    return _real("1/Z²", z**-2, scipy.stats.levy())


def stirling(n: Any) -> Any:
    r""":math:`\sqrt{2\pi n}\,(n/e)^n`, which n! tends to.

    >>> round(stirling(10) / math.factorial(10), 5)
    0.9917
    """
    n = np.asarray(n, np.float64)
    found = np.exp(0.5 * np.log(2 * np.pi * n) + n * (np.log(n) - 1))
    return float(found) if found.ndim == 0 else found


def _counts(name: str, draws: Any, limit: Any) -> Construction:
    top = int(max(draws.max(), limit.ppf(1 - 1e-9)))
    seen = np.bincount(draws.astype(np.int64), minlength=top + 1)
    exact = limit.pmf(np.arange(top + 1))
    exact[-1] += limit.sf(top)
    return Construction(name, draws, limit, *_compare(seen, exact))


def _compare(seen: Any, exact: Floats) -> tuple[float, float]:
    """Total variation, and the p of a χ² test with rare cells put together."""
    n = int(seen.sum())
    distance = float(np.abs(seen / n - exact).sum() / 2)
    big = n * exact >= 5
    hits = np.append(seen[big], seen[~big].sum())
    wanted = np.append(n * exact[big], n * exact[~big].sum())
    if wanted[-1] < 5 and len(wanted) > 1:  # too rare even together
        hits, wanted = (
            np.append(hits[:-2], hits[-2:].sum()),
            np.append(wanted[:-2], wanted[-2:].sum()),
        )
    if len(wanted) < 2:
        return distance, 1.0
    return distance, float(scipy.stats.chisquare(hits, wanted * n / wanted.sum()).pvalue)


def _real(name: str, draws: Floats, limit: Any) -> Construction:
    found = scipy.stats.kstest(draws, limit.cdf)
    return Construction(name, draws, limit, float(found.statistic), float(found.pvalue))
