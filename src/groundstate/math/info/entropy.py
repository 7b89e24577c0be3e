r"""Surprise :math:`-\log p`, entropy and cross-entropy.

.. math:: H(p) = -E_p\log p,\qquad H(p, q) = -E_p\log q = H(p) + KL(p\|q) \ge H(p)

Distributions are tables (weights, counts or log-weights) or torch distributions. Natural logarithm
unless a ``base`` is given.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from groundstate.compute.random import Key, RandomState, seeded
from groundstate.errors import Unsupported
from groundstate.math.arrays import takes_arrays
from groundstate.math.distributions.operations import draw
from groundstate.math.info.pmf import average, exact, in_base, logarithm, pmf, pmfs, weighted


def surprise(p: Any, value: Any = None, *, base: float | None = None) -> Any:
    r""":math:`-\log p` of probabilities, elementwise; or :math:`-\log p(v)`.

    Parameters
    ----------
    p : probabilities of any shape, or with ``value`` a table ``(..., K)`` or torch distribution
    value : what was seen: indices into the last axis of a table, or values of a distribution
    base : of the logarithm; 2 gives bits

    Examples
    --------
    >>> round(surprise(0.01), 4), surprise([0.5, 0.25], base=2).tolist()
    (4.6052, [1.0, 2.0])
    >>> surprise([0.5, 0.25, 0.25], [0, 2], base=2).tolist()
    [1.0, 2.0]
    """
    if isinstance(p, Distribution):
        if value is None:
            raise ValueError("the surprise of a distribution needs a value")
        return in_base(-p.log_prob(torch.as_tensor(value)), base)
    return _surprise(p, value, base)


@takes_arrays("p")
def _surprise(p: Any, value: Any, base: float | None) -> Any:
    seen = p.detach()
    if bool(((seen < 0) | (seen > 1 + 1e-6)).any()):
        raise ValueError("p must hold probabilities between 0 and 1")
    if value is not None:
        index = torch.as_tensor(value, device=p.device).long()
        p = p.expand(*index.shape, p.shape[-1]).gather(-1, index.unsqueeze(-1)).squeeze(-1)
    return in_base(-logarithm(p), base)


def code_length(q: Any, x: Any = None) -> Any:
    r"""Bits of the best code for ``q``, :math:`-\log_2 q(x)`; of every entry without ``x``.

    On data from p the mean length is :math:`H(p, q)`, of which :math:`KL(p\|q)` is waste.

    Examples
    --------
    >>> code_length([0.5, 0.25, 0.25]).tolist(), code_length([0.5, 0.25, 0.25], [0, 1]).tolist()
    ([1.0, 2.0, 2.0], [1.0, 2.0])
    """
    return surprise(q, x, base=2)


def entropy(
    p: Any,
    dim: int = -1,
    base: float | None = None,
    normalized: bool = False,
    *,
    logits: bool = False,
    n: int = 10_000,
    random_state: RandomState = None,
    stderr: bool = False,
) -> Any:
    r""":math:`H(p) = -\sum_k p_k\log p_k`, between 0 and :math:`\log K`.

    A torch distribution has its closed form, else the mean surprise of ``n`` draws.

    Parameters
    ----------
    p : weights or counts, divided by their sum along ``dim``; or a torch distribution
    dim : axis of the values
    base : of the logarithm; 2 gives bits
    normalized : divide by :math:`\log K`, the entropy of K equal weights
    logits : ``p`` holds unnormalised log-weights
    n, random_state : draws where there is no closed form
    stderr : return an ``Estimate(value, stderr)``

    Examples
    --------
    >>> round(entropy([0.2, 0.6, 0.2]), 6), round(entropy([9, 5], base=2), 6)
    (0.950271, 0.940286)
    >>> entropy([[1.0, 1.0], [1.0, 0.0]], normalized=True).tolist()
    [1.0, 0.0]
    """
    if not isinstance(p, Distribution):
        return _entropy(p, dim, base, normalized, logits, stderr)
    if normalized:
        raise Unsupported("normalized=True divides by log K and is for tables of K values")
    try:
        return exact(p.entropy(), base, stderr)
    except NotImplementedError:
        return average(-log_prob(p, draws(p, n, random_state)), base, stderr)


@takes_arrays("p", finite=False)
def _entropy(
    p: Any, dim: int, base: float | None, normalized: bool, logits: bool, stderr: bool
) -> Any:
    table = pmf(p, "p", dim, logits=logits)
    value = 0.0 - weighted(table.p, table.log).sum(dim)  # not minus zero
    if normalized:
        values = p.shape[dim]
        return exact(value / math.log(values) if values > 1 else value, None, stderr)
    return exact(value, base, stderr)


def cross_entropy(
    p: Any,
    q: Any,
    dim: int = -1,
    base: float | None = None,
    *,
    logits: bool = False,
    n: int = 10_000,
    random_state: RandomState = None,
    stderr: bool = False,
) -> Any:
    r""":math:`H(p, q) = -\sum_k p_k\log q_k`: mean code length of p's values in q's code.

    Infinite where q is 0 and p is not. Two torch distributions use their closed forms
    :math:`H(p) + KL(p\|q)`, else the mean of ``n`` draws from p.

    Parameters
    ----------
    p, q : two tables, or two torch distributions
    dim, base, logits, n, random_state, stderr : as in `entropy`

    Examples
    --------
    >>> [round(cross_entropy([0, 0, 1], [0.1, 0.2, 0.7], base=b), 6) for b in (None, 2, 10)]
    [0.356675, 0.514573, 0.154902]
    """
    if not pair(p, q):
        return _cross_entropy(p, q, dim, base, logits, stderr)
    try:
        return exact(kl_divergence(p, q) + p.entropy(), base, stderr)
    except NotImplementedError:
        return average(-log_prob(q, draws(p, n, random_state)), base, stderr)


@takes_arrays("p", "q", finite=False)
def _cross_entropy(p: Any, q: Any, dim: int, base: float | None, logits: bool, stderr: bool) -> Any:
    a, b = pmfs(p, q, dim, logits=logits)
    return exact(0.0 - weighted(a.p, b.log).sum(dim), base, stderr)


def pair(p: Any, q: Any) -> bool:
    """Whether both are torch distributions; a mixed pair is refused."""
    both = isinstance(p, Distribution), isinstance(q, Distribution)
    if any(both) and not all(both):
        raise Unsupported(
            "both distributions must be tables or both distributions; wrap a table of "
            "probabilities in torch.distributions.Categorical(probs=...)"
        )
    return all(both)


def draws(p: Distribution, n: int, random_state: RandomState) -> Tensor:
    """``n`` draws, with a gradient where the distribution has one to give."""
    key = Key.of(random_state)
    if p.has_rsample:
        with seeded(key):
            drawn: Tensor = p.rsample(torch.Size((n,)))
        return drawn
    return draw(p, n, key.torch())


def log_prob(distribution: Distribution, value: Tensor) -> Tensor:
    """``distribution.log_prob(value)``, typed."""
    result: Tensor = distribution.log_prob(value)
    return result
