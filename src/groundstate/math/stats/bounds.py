r"""What the error on n rows promises about rows to come, whatever their distribution.

.. math:: P(|R - \hat R| \ge \varepsilon) \le 2|\Theta| e^{-2n\varepsilon^2}
"""

from __future__ import annotations

import math

import scipy.stats

from groundstate.math.divergences.bernoulli import kl_bernoulli_inv
from groundstate.math.stats.bounds_pac_bayes import kl_gaussians, pac_bayes, pac_bayes_rhs
from groundstate.math.stats.bounds_vc import growth, vc


def hoeffding(n: int, delta: float = 0.05, a: float = 0.0, b: float = 1.0) -> float:
    r"""Width of Hoeffding's interval, :math:`(b-a)\sqrt{\log(2/\delta)/(2n)}`.

    With probability :math:`1-\delta` the mean of n independent losses in [a, b] is this close to
    its expectation, for one model fixed before the rows were seen.

    Examples
    --------
    >>> round(hoeffding(1000, 0.05), 6)
    0.042947
    """
    return finite_class(n, delta, 1, a, b)


def finite_class(
    n: int, delta: float = 0.05, size: float = 1, a: float = 0.0, b: float = 1.0
) -> float:
    r"""Width for the best of many, :math:`(b-a)\sqrt{(\log|\Theta| + \log(2/\delta))/(2n)}`.

    The union bound over ``size`` candidates: it holds for all of them at once, so also for the one
    picked by looking at the rows.

    Examples
    --------
    >>> round(finite_class(1000, 0.05, 1e6), 6)
    0.093553
    """
    _check(n, delta, size)
    if not b > a:
        raise ValueError(f"the losses lie between a and b > a, got a={a}, b={b}")
    return (b - a) * math.sqrt((math.log(size) + math.log(2 / delta)) / (2 * n))


def sample_size(eps: float, delta: float = 0.05, size: float = 1) -> int:
    r"""Rows for a width of ``eps``: :math:`n \ge (\log|\Theta| + \log(2/\delta))/(2\varepsilon^2)`.

    Examples
    --------
    >>> [sample_size(0.05, size=size) for size in (1, 1e3, 1e6)]
    [738, 2120, 3501]
    """
    _check(1, delta, size)
    if not eps > 0:
        raise ValueError(f"eps is a positive width, got {eps}")
    return math.ceil((math.log(size) + math.log(2 / delta)) / (2 * eps * eps))


def hoeffding_tail(n: int, eps: float) -> float:
    r"""Chance that a mean of n losses in [0, 1] is off by eps, at most :math:`2e^{-2n\varepsilon^2}`.

    >>> round(hoeffding_tail(100, 0.1), 6)
    0.270671
    """
    _check(n, 0.5, 1)
    return min(1.0, 2 * math.exp(-2 * n * eps * eps))


def risk_upper(
    errors: float, n: int, delta: float = 0.05, size: float = 1, method: str = "exact"
) -> float:
    r"""One-sided upper bound of the risk of 0-1 losses from the errors made, at :math:`1-\delta`.

    ===========  ===================================================================
    exact        the largest risk with :math:`P(\text{Bin}(n, R) \le k) \ge \delta`
    kl           the largest R with :math:`\mathrm{kl}(k/n, R) \le \log(1/\delta)/n`
    hoeffding    :math:`k/n + \sqrt{\log(1/\delta)/(2n)}`
    ===========  ===================================================================

    Parameters
    ----------
    errors, n : mistakes among n rows; "kl" and "hoeffding" take any loss in [0, 1], summed
    size : candidates that were tried; δ is divided by it

    Examples
    --------
    >>> [round(risk_upper(100, 1000, method=m), 6) for m in ("exact", "kl", "hoeffding")]
    [0.116992, 0.124808, 0.138702]
    """
    _check(n, delta, size)
    if not 0 <= errors <= n:
        raise ValueError(f"errors must be between 0 and n={n}, got {errors}")
    each = delta / size
    if method == "exact":
        return 1.0 if errors >= n else float(scipy.stats.beta.ppf(1 - each, errors + 1, n - errors))
    if method == "kl":
        return float(kl_bernoulli_inv(errors / n, math.log(1 / each) / n))
    if method == "hoeffding":
        return min(1.0, errors / n + math.sqrt(math.log(1 / each) / (2 * n)))
    raise ValueError(f"method must be 'exact', 'kl' or 'hoeffding', got {method!r}")


def _check(n: int, delta: float, size: float) -> None:
    if n < 1:
        raise ValueError(f"n is a number of rows, at least 1, got {n}")
    if not 0 < delta < 1:
        raise ValueError(f"delta is a probability between 0 and 1, got {delta}")
    if size < 1:
        raise ValueError(f"size is a number of candidates, at least 1, got {size}")


__all__ = [
    "finite_class",
    "growth",
    "hoeffding",
    "hoeffding_tail",
    "kl_gaussians",
    "pac_bayes",
    "pac_bayes_rhs",
    "risk_upper",
    "sample_size",
    "vc",
]
