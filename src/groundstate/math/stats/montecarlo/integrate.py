r"""Integrals by random and by evenly spread points, with the usual ways to make them sharper."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.compute.random import Key, RandomState
from groundstate.math.distributions.calculus.cumulative import icdf
from groundstate.math.distributions.operations import draw
from groundstate.math.stats.estimation.covariance import StreamingCov
from groundstate.math.stats.montecarlo.expectation import Accumulator, Expectation, looks_until

Sampler = Distribution | int | Callable[[int, torch.Generator], Tensor]
REPLICATES = 16


def expect_mc(
    f: Callable[[Tensor], Tensor] | None,
    sampler: Sampler,
    n: int = 10_000,
    *,
    antithetic: bool = False,
    control: tuple[Callable[[Tensor], Tensor], float] | None = None,
    qmc: Literal["sobol"] | None = None,
    rtol: float | None = None,
    level: float = 0.95,
    block: int = 2**16,
    random_state: Key | RandomState = 0,
) -> Expectation:
    r""":math:`E f(V)` from draws: a domain, draws from it, f at the draws, their mean.

    The error of plain draws is :math:`\sigma/\sqrt n`, whatever the dimension. ``antithetic`` pairs each draw
    with its mirror image, ``control`` subtracts a function whose mean is known, ``qmc`` spreads the points
    evenly (scrambled Sobol points of SciPy, 16 replicates whose spread is the standard error). Moments are
    merged block by block, so that draws are never all in memory. Values without a variance (Hill's index
    below 2, as for a Cauchy distribution) warn with ``Unreliable``.

    Parameters
    ----------
    f : maps draws ``(m, ...)`` to values ``(m, ...)``; None takes the draws themselves
    sampler : torch distribution; a whole number d for the unit cube :math:`[0, 1]^d`; or a function
        ``(m, generator) -> (m, ...)``
    n : number of draws, or the most there are if ``rtol`` is given
    control : function g and its mean E g; the best multiple of g is estimated
    rtol : stop when half the interval is at most this part of the mean
    level : of that interval
    random_state : seed or key

    Examples
    --------
    >>> inside = lambda u: 4.0 * (u.square().sum(-1) < 1)
    >>> pi = expect_mc(inside, 2, 100_000)
    >>> bool((pi.mean - math.pi).abs() < 4 * pi.stderr), round(float(pi.stderr) * 100_000**0.5, 2)
    (True, 1.64)
    >>> even = expect_mc(inside, 2, 100_000, qmc="sobol")
    >>> bool(even.stderr < pi.stderr / 3)
    True
    """
    if n < 2:
        raise ValueError(f"a standard error needs at least 2 draws, got n={n}")
    if rtol is not None and not rtol > 0:
        raise ValueError(f"rtol is a positive part of the mean, got {rtol}")
    f = f or (lambda v: v)
    key = Key.of(random_state)
    if qmc is not None:
        if qmc != "sobol":
            raise ValueError(f"qmc must be 'sobol' or None, got {qmc!r}")
        if antithetic or control is not None or rtol is not None:
            raise ValueError("qmc points are used alone, without antithetic, control or rtol")
        return _sobol(f, sampler, n, key)
    source = _mirrored(sampler) if antithetic else _source(sampler)
    generator = key.torch()
    moments, joint, g_mean = Accumulator(), None, 0.0
    if control is not None:
        if not isinstance(control, tuple) or len(control) != 2:
            raise ValueError("control is a pair: a function and its known mean")
        joint, g_mean = StreamingCov(), float(control[1])
    beta = 0.0
    for look in looks_until(n):
        while moments.count < look:
            # pairs are counted as draws; a block holds whole pairs
            m = min(block, look - moments.count)
            v = source(m, generator)
            values = f(v).detach().double()
            if antithetic:
                values = 0.5 * (values[0::2] + values[1::2]).repeat_interleave(2, 0)
            if control is not None and joint is not None:
                g = control[0](v).detach().double().reshape(-1)
                if antithetic:
                    g = 0.5 * (g[0::2] + g[1::2]).repeat_interleave(2, 0)
                if values.ndim != 1:
                    raise ValueError("a control variate needs an f with one number per draw")
                if moments.count == 0:  # the first block chooses the multiple, the rest uses it
                    joint.update(torch.stack([values, g], 1))
                    C = joint.covariance()
                    beta = float(C[0, 1] / C[1, 1]) if float(C[1, 1]) > 0 else 0.0
                values = values - beta * (g - g_mean)
            moments.add(values)
        moments.look()
        if rtol is not None and moments.count >= 30 and _close(moments, rtol, level, antithetic):
            break
    found = moments.result()
    return _paired(found) if antithetic else found


def _close(moments: Accumulator, rtol: float, level: float, antithetic: bool) -> bool:
    z = float(torch.special.ndtri(torch.tensor((1 + level) / 2, dtype=torch.float64)))
    error = moments.stderr * (math.sqrt(2) if antithetic else 1.0)
    return bool((z * error <= rtol * moments.mean.abs()).all())


def _paired(found: Expectation) -> Expectation:
    """Pairs were counted twice: the standard error is that of half as many."""
    return Expectation(
        found.mean, found.stderr * math.sqrt(2), found.variance, found.n, found.reliable,
        tuple((k, s * math.sqrt(2)) for k, s in found.running), found.running_mean,
        found.tail_index, found.n / 2 - 1,
    )  # fmt: skip


def _source(sampler: Any) -> Callable[[int, torch.Generator], Tensor]:
    if isinstance(sampler, Distribution):
        return lambda m, g: draw(sampler, m, g)
    if isinstance(sampler, int) and not isinstance(sampler, bool):
        if sampler < 1:
            raise ValueError(f"the unit cube has at least one dimension, got {sampler}")
        return lambda m, g: torch.rand(m, sampler, generator=g, dtype=torch.float64)
    if callable(sampler):
        made: Callable[[int, torch.Generator], Tensor] = sampler
        return made
    raise ValueError(
        f"sampler must be a torch distribution, a dimension or a function (m, generator), got "
        f"{type(sampler).__name__}"
    )


def _mirrored(sampler: Any) -> Callable[[int, torch.Generator], Tensor]:
    """Draws in pairs: a point of the cube and its mirror image, next to each other."""
    d, map_ = _cube(sampler, "antithetic draws")

    def take(m: int, generator: torch.Generator) -> Tensor:
        u = torch.rand((m + 1) // 2, d, generator=generator, dtype=torch.float64)
        return map_(torch.stack([u, 1 - u], 1).reshape(-1, d))

    return take


def _cube(sampler: Any, what: str) -> tuple[int, Callable[[Tensor], Tensor]]:
    """How many uniform numbers a draw needs, and the map from them to the draw."""
    if isinstance(sampler, int) and not isinstance(sampler, bool):
        return sampler, lambda u: u
    tiny = 2.0**-54

    def inner(u: Tensor) -> Tensor:
        return u.clamp(tiny, 1 - tiny)

    if isinstance(sampler, D.MultivariateNormal) and not sampler.batch_shape:
        L, loc = sampler.scale_tril.double(), sampler.loc.double()
        return len(loc), lambda u: loc + torch.special.ndtri(inner(u)) @ L.T
    if isinstance(sampler, Distribution):
        base, shape = sampler, (*sampler.batch_shape, *sampler.event_shape)
        while isinstance(base, D.Independent):
            base = base.base_dist
        if not base.event_shape:
            one: Any = base
            return math.prod(shape), lambda u: icdf(one, inner(u).reshape(-1, *shape))
    raise ValueError(
        f"{what} need the unit cube (a whole number) or a distribution of independent numbers with "
        f"quantiles, got {type(sampler).__name__}"
    )


def _sobol(f: Any, sampler: Any, n: int, key: Key) -> Expectation:
    """Means over scrambled Sobol points; replicates differ in the scrambling."""
    from scipy.stats import qmc

    d, map_ = _cube(sampler, "Sobol points")
    each = max(1, (n // REPLICATES).bit_length() - 1)  # points of a replicate: a power of two
    means, squares = [], []
    for i in range(REPLICATES):
        seed = np.random.default_rng(
            key.fold(i).low
        )  # SciPy splits it, which a Philox key cannot be
        points = qmc.Sobol(d, scramble=True, rng=seed).random_base2(each)
        values = f(map_(torch.from_numpy(points))).detach().double()
        means.append(values.mean(0))
        squares.append(values.var(0))
    stack = torch.stack(means)
    count = REPLICATES << each
    mean, stderr = stack.mean(0), stack.std(0) / math.sqrt(REPLICATES)
    running = ((count, float(stderr.max())),)
    return Expectation(mean, stderr, torch.stack(squares).mean(0), count, True, running,
                       mean.unsqueeze(0), math.inf, REPLICATES - 1)  # fmt: skip
