r"""Expectations by Monte Carlo: :math:`\mathbb{E} f \approx \frac1n\sum_i f(v_i)`, error
:math:`\sigma/\sqrt n`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.infer.base import Draws
from groundstate.math.distributions.operations import draw
from groundstate.math.stats.psis import weight_ess

Sampler = Callable[[int, torch.Generator], Tensor]
LOOKS = 8  # places at which the running standard error is noted, each twice as far as the last
DOMINANT = 0.1  # share of the sum of squares that one draw of a thousand may have
STEEP = -0.25  # a finite variance gives a slope of -1/2 in log stderr against log n


@dataclass(frozen=True)
class Expectation(Displayed):
    """A Monte Carlo mean with its standard error.

    Attributes
    ----------
    mean, stderr : shape of one value of ``f``
    variance : variance of ``f`` over the draws
    n : draws; for weighted draws the effective number
    reliable : False when the standard error does not fall like 1/√n or hangs on a single draw
    running : draws and largest standard error at each look
    """

    mean: Tensor
    stderr: Tensor
    variance: Tensor
    n: float
    reliable: bool = True
    running: tuple[tuple[int, float], ...] = ()


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
    looks = sorted({max(2, n >> k) for k in range(LOOKS)})
    count, mean, square, largest = 0, torch.zeros(()), torch.zeros(()), torch.zeros(())
    running = []
    for look in looks:
        while count < look:
            m = min(block, look - count)
            part = f(source(m, generator)).detach()
            own = part.to(torch.float64)
            own_mean = own.mean(0)
            own_square = (own - own_mean).square().sum(0)
            gap = own_mean - mean
            total = count + m
            square = square + own_square + gap.square() * (count * m / total)
            mean = mean + gap * (m / total)
            largest = torch.maximum(largest, (own - mean).square().amax(0))
            count = total
        stderr = (square / (count - 1) / count).sqrt()
        running.append((count, float(stderr.max())))
    variance = square / (count - 1)
    # one draw that makes up much of all squares: the next such draw will move everything again
    lonely = count >= 1000 and bool((largest > DOMINANT * square).any())
    reliable = _falls(running) and not lonely
    if not reliable:
        warnings.warn(
            f"the standard error does not fall steadily with the number of draws (from "
            f"{running[0][1]:.3g} at n={running[0][0]} to {running[-1][1]:.3g} at n={count}); the "
            "variance may be infinite and the mean meaningless",
            Unreliable,
            stacklevel=2,
        )
    stderr = (variance / count).sqrt()
    return Expectation(mean, stderr, variance, count, reliable, tuple(running))


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


def _falls(running: list[tuple[int, float]]) -> bool:
    points = [(math.log(k), math.log(s)) for k, s in running if s > 0 and k >= 30]
    if len(points) < 4:
        return True
    x, y = (torch.tensor(v, dtype=torch.float64) for v in zip(*points, strict=True))
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum()) < STEEP


def _weighted(values: Tensor, log_weight: Tensor) -> Expectation:
    """Self-normalised mean of ``(n, B, ...)`` values with log weights ``(n, B)``."""
    w = log_weight.softmax(0).reshape(*log_weight.shape, *(1,) * (values.ndim - 2)).double()
    values = values.double()
    mean = (w * values).sum(0)
    centred = (values - mean).square()
    stderr = (w.square() * centred).sum(0).sqrt()
    return Expectation(mean, stderr, (w * centred).sum(0), float(weight_ess(log_weight).min()))
