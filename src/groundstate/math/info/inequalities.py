r"""The inequalities of information theory as checks with both sides shown.

Each function returns ``Inequality(lhs, rhs)`` with ``lhs <= rhs`` for every valid input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.info.entropy import entropy
from groundstate.math.info.pmf import Pmf, pmf, weighted


class Inequality(NamedTuple):
    """The two sides of ``lhs <= rhs``."""

    lhs: Any
    rhs: Any

    def holds(self, tol: float = 1e-9) -> Any:
        """Whether the left side is not above the right one by more than rounding."""
        return self.lhs <= self.rhs + tol

    @property
    def gap(self) -> Any:
        """Right side less left side."""
        return self.rhs - self.lhs


@takes_arrays("x", "p")
def jensen(
    f: Callable[[Tensor], Tensor], x: Any, p: Any = None, *, concave: bool = False
) -> Inequality:
    r""":math:`f(E x) \le E f(x)` for convex f; the sides swap for concave f.

    Parameters
    ----------
    f : function of tensors
    x : values ``(..., K)``
    p : weights of the values, equal unless given
    concave : f is concave, such as the logarithm

    Examples
    --------
    >>> found = jensen(torch.log, [1.0, 4.0], concave=True)
    >>> round(found.lhs, 6), round(found.rhs, 6)
    (0.693147, 0.916291)
    """
    weight = pmf(torch.ones_like(x) if p is None else p).p
    at_mean, mean = f((weight * x).sum(-1)), (weight * f(x)).sum(-1)
    return Inequality(mean, at_mean) if concave else Inequality(at_mean, mean)


@takes_arrays("p", "q")
def gibbs(p: Any, q: Any) -> Inequality:
    r""":math:`H(p) \le H(p, q)`: no code beats one's own.

    >>> found = gibbs([0.5, 0.5], [0.9, 0.1])
    >>> round(found.lhs, 6), round(found.rhs, 6)
    (0.693147, 1.203973)
    """
    a, b = pmf(p), pmf(q, "q")
    return Inequality(-weighted(a.p, a.log).sum(-1), -weighted(a.p, b.log).sum(-1))


@takes_arrays("p", "q")
def pinsker(p: Any, q: Any) -> Inequality:
    r""":math:`2\,TV(p, q)^2 \le KL(p\|q)`.

    >>> found = pinsker([0.5, 0.5], [0.9, 0.1])
    >>> round(found.lhs, 6), round(found.rhs, 6)
    (0.32, 0.510826)
    """
    a, b = pmf(p), pmf(q, "q")
    return Inequality(0.5 * (a.p - b.p).abs().sum(-1) ** 2, _kl(a, b))


@takes_arrays("a", "b")
def log_sum(a: Any, b: Any) -> Inequality:
    r""":math:`(\sum_i a_i)\log\frac{\sum a_i}{\sum b_i} \le \sum_i a_i\log\frac{a_i}{b_i}` for
    non-negative numbers, whatever their sums.

    >>> found = log_sum([1.0, 2.0], [3.0, 1.0])
    >>> round(found.lhs, 6), round(found.rhs, 6)
    (-0.863046, 0.287682)
    """
    p, q = pmf(a, "a"), pmf(b, "b")
    mass = a.sum(-1)
    whole = mass * (mass / b.sum(-1)).log()
    return Inequality(whole, whole + mass * _kl(p, q))


@takes_arrays("p", "q", "channel")
def data_processing(p: Any, q: Any, channel: Any) -> Inequality:
    r""":math:`KL(pT\|qT) \le KL(p\|q)`: passing both through one channel makes them no easier to
    tell apart.

    Parameters
    ----------
    p, q : weights ``(..., K)``
    channel : ``(K, L)``, the distribution of the output for each input

    Examples
    --------
    >>> found = data_processing([0.5, 0.5], [0.9, 0.1], [[0.8, 0.2], [0.3, 0.7]])
    >>> bool(found.holds())
    True
    """
    a, b, T = pmf(p), pmf(q, "q"), pmf(channel, "channel").p
    return Inequality(_kl(pmf(a.p @ T), pmf(b.p @ T)), _kl(a, b))


@takes_arrays("components", "weights")
def mixture_entropy(components: Any, weights: Any = None) -> Inequality:
    r""":math:`\sum_k w_kH(p_k) \le H(\sum_k w_kp_k)`: mixing cannot lower the mean entropy; it may
    lie below the entropy of a single component.

    Parameters
    ----------
    components : ``(..., C, K)``, one distribution in each row
    weights : ``(..., C)``, equal unless given

    Examples
    --------
    >>> found = mixture_entropy([[1, 1, 1, 1], [1, 0, 0, 0]])
    >>> round(found.lhs, 6), round(found.rhs, 6)
    (0.693147, 1.073543)
    """
    parts = pmf(components, "components")
    w = pmf(torch.ones_like(components[..., 0]) if weights is None else weights, "weights").p
    mean = (w * -weighted(parts.p, parts.log).sum(-1)).sum(-1)
    return Inequality(mean, entropy((w.unsqueeze(-1) * parts.p).sum(-2)))


def _kl(p: Pmf, q: Pmf) -> Tensor:
    return weighted(p.p, torch.where(p.p > 0, p.log, 0.0) - q.log).sum(-1)
