r"""Information: surprise :math:`-\log p`, entropy, cross-entropy and Kullback-Leibler divergence.

.. math:: H(q) = -E_q\log q,\quad H(q, p) = -E_q\log p,\quad KL(q\|p) = H(q, p) - H(q) \ge 0

Distributions are tensors of probabilities (last axis sums to one) or torch distributions. Natural
logarithm; ``code_length`` is in bits. :math:`0\log 0 = 0`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.distributions.operations import draw

DistributionLike = Tensor | Distribution


class Estimate(NamedTuple):
    """A value and its standard error; the error is 0 where the value is exact."""

    value: Tensor
    stderr: Tensor


def surprise(p: DistributionLike, value: Tensor | None = None) -> Tensor:
    r""":math:`-\log p(v)`; for a tensor of probabilities without ``value``, of every entry.

    >>> round(float(surprise(torch.tensor([0.5, 0.25, 0.25]), torch.tensor(1))), 6)
    1.386294
    """
    if isinstance(p, Distribution):
        if value is None:
            raise ValueError("the surprise of a distribution needs a value")
        return -p.log_prob(value)
    if value is not None:
        p = p.expand(*value.shape, p.shape[-1]).gather(-1, value.unsqueeze(-1)).squeeze(-1)
    return -p.log()


def code_length(q: DistributionLike, value: Tensor | None = None) -> Tensor:
    r"""Length of the best code for ``q`` in bits, :math:`-\log_2 q(v)`.

    >>> code_length(torch.tensor([0.5, 0.25, 0.25])).tolist()
    [1.0, 2.0, 2.0]
    """
    return surprise(q, value) / math.log(2)


def entropy(
    q: DistributionLike,
    *,
    n: int = 10_000,
    generator: torch.Generator | None = None,
    stderr: bool = False,
) -> Tensor | Estimate:
    r""":math:`H(q) = -\sum_k q_k\log q_k`.

    Closed form where there is one, else the mean surprise of ``n`` draws; ``stderr=True`` returns
    the value with its standard error.

    >>> round(float(entropy(torch.tensor([0.2, 0.6, 0.2]))), 6)
    0.950271
    """
    if isinstance(q, Tensor):
        return _exact(-_xlogy(_distribution(q), q).sum(-1), stderr)
    try:
        return _exact(q.entropy(), stderr)
    except NotImplementedError:
        return _mean(-_log_prob(q, draw(q, n, generator)), stderr)


def cross_entropy(
    q: DistributionLike,
    p: DistributionLike,
    *,
    n: int = 10_000,
    generator: torch.Generator | None = None,
    stderr: bool = False,
) -> Tensor | Estimate:
    r""":math:`H(q, p) = -E_q\log p`: mean code length of ``q``'s values in ``p``'s code, in nats.

    Infinite where ``p`` is 0 and ``q`` is not.
    """
    if isinstance(q, Tensor) and isinstance(p, Tensor):
        return _exact(-_xlogy(_distribution(q), _distribution(p)).sum(-1), stderr)
    distribution_q, distribution_p = _both(q, p)
    try:
        return _exact(
            kl_divergence(distribution_q, distribution_p) + distribution_q.entropy(), stderr
        )
    except NotImplementedError:
        return _mean(-_log_prob(distribution_p, draw(distribution_q, n, generator)), stderr)


def kl(
    q: DistributionLike,
    p: DistributionLike,
    *,
    n: int = 10_000,
    generator: torch.Generator | None = None,
    stderr: bool = False,
) -> Tensor | Estimate:
    r""":math:`KL(q\|p) = \sum_k q_k\log(q_k/p_k)`, 0 exactly when the distributions agree.

    Closed form where torch knows it, else the mean of ``n`` draws of :math:`\log q - \log p`.

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> zero, one, two = torch.tensor([0.0, 1.0, 2.0])
    >>> round(float(kl(Normal(zero, one), Normal(one, two))), 6)
    0.443147
    """
    if isinstance(q, Tensor) and isinstance(p, Tensor):
        distribution_q, distribution_p = _distribution(q), _distribution(p)
        return _exact(
            (_xlogy(distribution_q, distribution_q) - _xlogy(distribution_q, distribution_p)).sum(
                -1
            ),
            stderr,
        )
    a, b = _both(q, p)
    try:
        return _exact(kl_divergence(a, b), stderr)
    except NotImplementedError:
        value = draw(a, n, generator)
        return _mean(_log_prob(a, value) - _log_prob(b, value), stderr)


def _distribution(p: Tensor) -> Tensor:
    if p.ndim == 0 or not p.is_floating_point():
        raise ShapeError(
            f"probabilities are a float tensor (..., K), got {p.dtype} {tuple(p.shape)}"
        )
    total = p.detach().sum(-1)
    if bool((p.detach() < 0).any()) or not torch.allclose(total, torch.ones_like(total), atol=1e-4):
        raise ValueError("probabilities must be non-negative and sum to one along the last axis")
    return p


def _xlogy(q: Tensor, p: Tensor) -> Tensor:
    return torch.special.xlogy(q, p)


def _both(q: DistributionLike, p: DistributionLike) -> tuple[Distribution, Distribution]:
    if isinstance(q, Tensor) or isinstance(p, Tensor):
        raise Unsupported(
            "both distributions must be tensors or both distributions; wrap a tensor of probabilities in "
            "torch.distributions.Categorical(probs=...)"
        )
    return q, p


def _log_prob(distribution: Distribution, value: Tensor) -> Tensor:
    result: Tensor = distribution.log_prob(value)
    return result


def _exact(value: Tensor, stderr: bool) -> Tensor | Estimate:
    return Estimate(value, torch.zeros_like(value)) if stderr else value


def _mean(each: Tensor, stderr: bool) -> Tensor | Estimate:
    value = each.mean(0)
    return Estimate(value, each.std(0) / math.sqrt(len(each))) if stderr else value
