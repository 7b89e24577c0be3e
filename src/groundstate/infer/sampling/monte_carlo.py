r"""Expectations by Monte Carlo: :math:`\mathbb{E} f \approx \frac1n\sum_i f(v_i)`, error
:math:`\sigma/\sqrt n`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.random import Key
from groundstate.infer.base import Draws
from groundstate.math.distributions.operations import draw
from groundstate.math.stats.montecarlo.expectation import Accumulator, Expectation, looks_until
from groundstate.math.stats.psis import weight_ess

Sampler = Callable[[int, torch.Generator], Tensor]


def expect(
    f: Callable[[Tensor], Tensor] | None,
    sampler: Distribution | Sampler | Draws | Tensor,
    n: int = 10_000,
    *,
    variable: str | None = None,
    generator: torch.Generator | None = None,
    block: int = 2**16,
) -> Expectation:
    r"""Mean of ``f`` over draws, with its standard error :math:`\sigma/\sqrt n`.

    Moments are merged block by block, so that draws are never all in memory. A running standard
    error that does not fall, as for a Cauchy distribution, warns with ``Unreliable``.

    Parameters
    ----------
    f : maps draws ``(m, ...)`` to values ``(m, ...)``; None takes the draws themselves
    sampler : a distribution, a function ``(m, generator) -> (m, ...)``, ``Draws`` or a tensor of draws;
        weighted ``Draws`` give the self-normalised mean
    n : number of draws; for ``Draws`` and tensors all of them
    variable : which variable of ``Draws``, if there are several
    generator : source of randomness
    block : draws at a time

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> half = expect(lambda v: (v > 0).double(), Normal(0.0, 1.0), 10_000,
    ...               generator=torch.Generator().manual_seed(0))
    >>> bool((half.mean - 0.5).abs() < 4 * half.stderr), half.reliable
    (True, True)
    """
    f = f or (lambda v: v)
    if isinstance(sampler, Draws):
        values = sampler.values[variable or next(iter(sampler.values))]
        if sampler.log_weight is not None:
            return _weighted(f(values), sampler.log_weight)
        sampler = values
    if isinstance(sampler, Tensor):
        stored, n = sampler, len(sampler)
        at = 0

        def take(m: int, _: torch.Generator) -> Tensor:
            nonlocal at
            at += m
            return stored[at - m : at]

        source: Sampler = take
    elif isinstance(sampler, Distribution):
        distribution = sampler
        source = lambda m, g: draw(distribution, m, g)  # noqa: E731
    else:
        source = sampler
    if n < 2:
        raise ValueError(f"a standard error needs at least 2 draws, got n={n}")
    generator = generator or Key.of(None).torch()
    moments = Accumulator(tail=False)
    for look in looks_until(n):
        while moments.count < look:
            moments.add(f(source(min(block, look - moments.count), generator)))
        moments.look()
    return moments.result()


def expect_sum(
    term: Callable[[Tensor], Tensor],
    count: int,
    n: int = 10_000,
    *,
    generator: torch.Generator | None = None,
) -> Expectation:
    r"""A long sum :math:`\sum_{i<N} a_i` as N times the mean of random terms.

    Parameters
    ----------
    term : maps indices ``(m,)`` to the terms ``(m,)``
    count : number N of terms
    n : number of random terms

    Examples
    --------
    >>> total = expect_sum(lambda i: i.double(), 101, generator=torch.Generator().manual_seed(0))
    >>> bool((total.mean - 5050).abs() < 4 * total.stderr)
    True
    """

    def indices(m: int, g: torch.Generator) -> Tensor:
        return torch.randint(count, (m,), generator=g, device=g.device)

    return expect(lambda i: count * term(i), indices, n, generator=generator)


def _weighted(values: Tensor, log_weight: Tensor) -> Expectation:
    """Self-normalised mean of ``(n, B, ...)`` values with log weights ``(n, B)``."""
    w = log_weight.softmax(0).reshape(*log_weight.shape, *(1,) * (values.ndim - 2)).double()
    values = values.double()
    mean = (w * values).sum(0)
    centred = (values - mean).square()
    stderr = (w.square() * centred).sum(0).sqrt()
    return Expectation(mean, stderr, (w * centred).sum(0), float(weight_ess(log_weight).min()))


__all__ = ["Expectation", "Sampler", "expect", "expect_sum"]
