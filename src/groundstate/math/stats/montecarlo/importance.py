r"""Importance sampling: :math:`E_p f = E_q\bigl[f\,p/q\bigr]`, from draws of q."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import Unreliable
from groundstate.math.distributions.operations import draw
from groundstate.math.stats.psis import pareto_k, weight_ess

TRUSTED_K = 0.7  # above it the weights' variance may be infinite for any practical n
JUDGED_N = 25  # with fewer weights there is no tail to look at


@dataclass(frozen=True)
class ImportanceEstimate(Displayed):
    """An expectation from weighted draws.

    Attributes
    ----------
    value : :math:`E_p f`, or its logarithm
    stderr : standard error (of the logarithm: by the delta method)
    variance : of a single weighted draw, :math:`\\int f^2p^2/q - \\mu^2`
    ess : effective number of draws, :math:`(\\sum w)^2/\\sum w^2`
    pareto_k : tail index of the weights; above .7 nothing here can be trusted
    n : draws
    """

    value: float
    stderr: float
    variance: float
    ess: float
    pareto_k: float
    n: int


def importance(
    log_f: Callable[[Tensor], Tensor] | None,
    log_p: Callable[[Tensor], Tensor] | Distribution,
    q: Distribution,
    n: int = 10_000,
    *,
    log: bool = False,
    self_normalised: bool = False,
    random_state: Key | RandomState = 0,
) -> ImportanceEstimate:
    r""":math:`E_p f` with draws of q and log weights :math:`\log w = \log p - \log q`.

    The variance of one weighted draw is :math:`\int f^2p^2/q - \mu^2`: zero for :math:`q \propto fp`, infinite
    for a q with lighter tails than fp. The estimate is unbiased, so its logarithm is biased low.

    Parameters
    ----------
    log_f : log of a positive f, elementwise on draws; None is f = 1 (the mean weight: a normalising constant)
    log_p : log density of p, or a distribution; up to a constant if ``self_normalised``
    q : proposal, a torch distribution
    log : return the logarithm of the estimate, summed in logs
    self_normalised : divide by the sum of the weights
    random_state : seed or key

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> one = torch.tensor(1.0).double()
    >>> likelihood = lambda z: Normal(z, one).log_prob(2 * one)  # p(x = 2 | z), z ~ N(0, 1)
    >>> best = Normal(one, (0.5 * one).sqrt())  # the posterior
    >>> found = importance(likelihood, Normal(0 * one, one), best, 100)
    >>> round(found.value, 6), found.variance < 1e-20
    (0.103777, True)
    """
    if n < 2:
        raise ValueError(f"a standard error needs at least 2 draws, got n={n}")
    z = draw(q, n, Key.of(random_state).torch())
    with torch.no_grad():
        score = log_p.log_prob(z) if isinstance(log_p, Distribution) else log_p(z)
        log_w = (score - q.log_prob(z)).double()
        log_v = log_w if log_f is None else log_w + log_f(z).double()
    if log_v.shape != (n,):
        raise ValueError(
            f"log_f and log_p must give one number per draw, got shape {tuple(log_v.shape)}"
        )
    if bool(torch.isnan(log_v).any()) or bool((log_v == math.inf).any()):
        raise ValueError("some log weights are NaN or +inf; q must be positive wherever p is")
    k = _tail(log_v if not self_normalised else log_w)
    ess = float(weight_ess(log_w))
    level = float(log_v.logsumexp(0)) - math.log(n)  # log of the plain estimate
    if self_normalised:
        share = log_w.softmax(0)
        f_over = (log_v - log_w) if log_f is not None else torch.zeros_like(log_w)
        log_value = float((log_w.log_softmax(0) + f_over).logsumexp(0))
        f = (f_over - log_value).exp()  # f over the estimate
        relative = float((share.square() * (f - 1).square()).sum().sqrt())
    else:
        log_value = level
        ratio = (log_v - level).exp()  # mean one
        relative = float(ratio.std()) / math.sqrt(n)
    if k > TRUSTED_K and n >= JUDGED_N:
        warnings.warn(
            f"importance weights have a heavy tail (Pareto k {k:.2f} > {TRUSTED_K}); the estimate and its "
            "standard error cannot be trusted, take a proposal with heavier tails",
            Unreliable,
            stacklevel=2,
        )
    value = math.exp(log_value)
    variance = (relative * value) ** 2 * n
    if log:
        return ImportanceEstimate(log_value, relative, variance, ess, k, n)
    return ImportanceEstimate(value, relative * value, variance, ess, k, n)


def _tail(log_weight: Tensor) -> float:
    """The Pareto index; rounding has no tail, and weights of zero are no part of it."""
    some = log_weight[torch.isfinite(log_weight)]
    if len(some) < JUDGED_N or float(some.max() - some.min()) < 1e-6:
        return -math.inf if len(some) and float(some.max() - some.min()) < 1e-6 else math.inf
    return float(pareto_k(some))
