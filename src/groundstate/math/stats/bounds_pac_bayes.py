r"""PAC-Bayes: what the mean error of a posterior promises, given a prior fixed before the rows.

.. math::
    \mathrm{kl}\bigl(\hat R(Q)\,\|\,R(Q)\bigr) \le
    \frac{\mathrm{KL}(Q\|P) + \log\frac{n+1}{\delta}}{n}
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from groundstate.math.divergences.bernoulli import kl_bernoulli_inv

LogTerm = Literal["seeger", "maurer"]


def pac_bayes(
    risk: float,
    n: int,
    kl: float,
    delta: float = 0.05,
    form: Literal["kl", "sqrt"] = "kl",
    log_term: LogTerm = "seeger",
) -> float:
    r"""Upper bound of the Gibbs risk :math:`R(Q)`, at :math:`1-\delta` for all posteriors at once.

    ``"kl"`` is the largest R with :math:`\mathrm{kl}(\hat R, R)` within the right-hand side c, see
    :func:`pac_bayes_rhs`; ``"sqrt"`` is the looser :math:`\hat R + \sqrt{c/2}` of Pinsker.

    Parameters
    ----------
    risk : mean over Q of the share of wrong rows, in [0, 1]
    n : number of rows
    kl : :math:`\mathrm{KL}(Q\|P)` in nats
    delta : probability that the bound fails
    form, log_term : which bound

    Examples
    --------
    >>> round(pac_bayes(0.1, 1000, 5.0), 6), round(pac_bayes(0.1, 1000, 5.0, form="sqrt"), 6)
    (0.159576, 0.186326)
    >>> round(pac_bayes(0.1, 1000, 5.0, log_term="maurer"), 6)
    0.15311
    """
    if not 0.0 <= risk <= 1.0:
        raise ValueError(f"risk is a share of rows from 0 to 1, got {risk}")
    c = pac_bayes_rhs(n, kl, delta, log_term)
    if form == "kl":
        return float(kl_bernoulli_inv(risk, c))
    if form == "sqrt":
        return min(1.0, risk + math.sqrt(c / 2))
    raise ValueError(f"form must be 'kl' or 'sqrt', got {form!r}")


def pac_bayes_rhs(n: int, kl: float, delta: float = 0.05, log_term: LogTerm = "seeger") -> float:
    r"""The right-hand side :math:`(\mathrm{KL}(Q\|P) + \log(\xi(n)/\delta))/n`.

    ``"seeger"``: :math:`\xi = n + 1`; ``"maurer"``: :math:`\xi = 2\sqrt n`, from 8 rows on.

    Examples
    --------
    >>> round(pac_bayes_rhs(1000, 5.0, 0.05), 7)
    0.0149045
    """
    if n < 1:
        raise ValueError(f"n is a number of rows, at least 1, got {n}")
    if not kl >= 0:
        raise ValueError(f"a divergence is at least 0, got kl={kl}")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is a probability between 0 and 1, got {delta}")
    if log_term not in ("seeger", "maurer"):
        raise ValueError(f"log_term must be 'seeger' or 'maurer', got {log_term!r}")
    if log_term == "maurer" and n < 8:
        raise ValueError(f"log_term='maurer' holds from 8 rows on, got n={n}; take 'seeger'")
    many = n + 1 if log_term == "seeger" else 2 * math.sqrt(n)
    return (kl + math.log(many / delta)) / n


def kl_gaussians(mean: Any, std: Any, prior_mean: Any, prior_std: float) -> float:
    r""":math:`\mathrm{KL}` of :math:`N(\theta, \mathrm{diag}\,s^2)` from :math:`N(\theta_0, s_0^2 I)`:

    .. math:: \sum_j \log\frac{s_0}{s_j} + \frac{s_j^2 + (\theta_j - \theta_{0j})^2}{2 s_0^2}
        - \tfrac12

    Examples
    --------
    >>> kl_gaussians([1.0, 2.0], 0.5, [1.0, 2.0], 0.5), kl_gaussians([1.0], 1.0, [0.0], 1.0)
    (0.0, 0.5)
    """
    theta, start = np.broadcast_arrays(np.asarray(mean, float), np.asarray(prior_mean, float))
    s = np.broadcast_to(np.asarray(std, float), theta.shape)
    if not (s > 0).all() or not prior_std > 0:
        raise ValueError(f"standard deviations are positive, got std={std}, prior_std={prior_std}")
    ratio = np.square(s / prior_std)
    shift = np.square((theta - start) / prior_std)
    return max(0.0, float(0.5 * (ratio + shift - 1.0 - np.log(ratio)).sum()))
