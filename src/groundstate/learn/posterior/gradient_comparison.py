r"""Gradient estimators side by side: mean, variance and cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, Normal

from groundstate.compute.random import split
from groundstate.errors import Unsupported
from groundstate.learn.posterior.gradient_estimators import (
    Function,
    leaves,
    per_value,
    place,
    scores,
)
from groundstate.math.distributions.operations import draw

BLOCK = 2**14  # draws whose gradients are taken at once, fewer where there are many parameters
ENTRIES = 2**22  # of the gradients of one block
FIRST = 64  # draws of the first block, which shows how many parameters there are
MANY = 4096  # draws that stand for an average
NODES = 64  # of Gauss-Hermite quadrature


@dataclass(frozen=True)
class EstimatorRow:
    r"""One estimator of :math:`\nabla_\varphi E_q[f]`.

    Attributes
    ----------
    name : "exact", "score function", "score function, mean", ..., "pathwise"
    mean : average estimate, ``(P,)``
    variance : total variance of one estimate from n draws (the sum over coordinates)
    stderr : standard error of ``mean``, ``(P,)``
    seconds : time of one estimate
    expected : what ``variance`` converges to, where q is finite or a normal distribution on a line
    """

    name: str
    mean: Tensor
    variance: float
    stderr: Tensor
    seconds: float
    expected: float | None = None


def compare_estimators(
    f: Function,
    q: Distribution,
    n: int = 1,
    repeats: int = 1000,
    *,
    generator: torch.Generator | None = None,
) -> list[EstimatorRow]:
    r"""Repeat every estimator of :math:`\nabla_\varphi E_q[f]` that applies and compare them.

    Parameters
    ----------
    f : maps draws ``(n, *event)`` to values ``(n,)``
    q : one distribution (batch shape ``()``) whose parameters require gradients
    n : draws per estimate
    repeats : estimates per estimator
    generator : source of randomness

    Returns
    -------
    one row per estimator: the exact gradient where it is a finite sum or one-dimensional
    quadrature, the score function without and with baselines, pathwise

    Examples
    --------
    >>> from torch.distributions import Categorical
    >>> logits = torch.tensor([0.5, 0.3, 0.2]).log().requires_grad_()
    >>> reward = torch.tensor([1.0, 2.0, 4.0])
    >>> rows = compare_estimators(lambda z: reward[z], Categorical(logits=logits), repeats=10)
    >>> rows[0].name, [round(v, 2) for v in rows[0].mean.tolist()]
    ('exact', [-0.45, 0.03, 0.42])
    """
    if q.batch_shape:
        raise Unsupported(
            f"compare_estimators takes one distribution, got batch shape {tuple(q.batch_shape)}"
        )
    rows = []
    start = time.perf_counter()
    exact = _exact(f, q)
    if exact is not None:
        seconds = time.perf_counter() - start
        rows.append(EstimatorRow("exact", exact, 0.0, torch.zeros_like(exact), seconds, 0.0))
    for name in ("", "mean", "optimal"):
        b = _constant(name, f, q, generator)

        def scored(z: Tensor, b: float = b) -> Tensor:
            with torch.no_grad():
                values = f(z)
            return (values - b)[:, None] * scores(q, z.detach())

        title = f"score function, {name}" if name else "score function"
        drawn = _drawn(q, scored)
        rows.append(_repeat(title, drawn, n, repeats, generator, _expected(q, scored, n)))
    if n > 1:

        def compared(count: int, own: torch.Generator) -> Tensor:
            z = draw(q, count, own)
            with torch.no_grad():
                values = f(z).view(-1, n)
            others = (values.sum(1, keepdim=True) - values) / (n - 1)
            return (values - others).reshape(-1, 1) * scores(q, z)

        rows.append(_repeat("score function, leave_one_out", compared, n, repeats, generator))
    if q.has_rsample:

        def through(z: Tensor) -> Tensor:
            return per_value(f(z), _phi(q))

        def placed(count: int, own: torch.Generator) -> Tensor:
            return through(place(q, count, own))

        rows.append(_repeat("pathwise", placed, n, repeats, generator, _expected(q, through, n)))
    return rows


def _drawn(
    q: Distribution, each: Callable[[Tensor], Tensor]
) -> Callable[[int, torch.Generator], Tensor]:
    return lambda count, own: each(draw(q, count, own))


def _expected(q: Distribution, each: Callable[[Tensor], Tensor], n: int) -> float | None:
    """Total variance of the mean of n independent estimates, where averages over q are exact."""
    nodes = _nodes(q)
    if nodes is None:
        return None
    z, weights = nodes
    found = each(z).detach()  # (m, P)
    mean = (weights[:, None] * found).sum(0)
    return float((weights * found.square().sum(1)).sum() - mean.square().sum()) / n


def _repeat(
    name: str,
    estimate: Callable[[int, torch.Generator], Tensor],
    n: int,
    repeats: int,
    generator: torch.Generator | None,
    expected: float | None = None,
) -> EstimatorRow:
    (own,) = split(generator, 1)
    found, done, start = [], 0, time.perf_counter()
    count = min(repeats, max(1, FIRST // n))
    while done < repeats:
        each = estimate(count * n, own)  # (count*n, P)
        found.append(each.view(count, n, -1).mean(1))
        done += count
        block = min(BLOCK, ENTRIES // max(1, each.shape[1]))
        count = min(repeats - done, max(1, block // n))
    seconds = (time.perf_counter() - start) / repeats
    all_of = torch.cat(found)  # (repeats, P)
    variance = all_of.var(0) if repeats > 1 else torch.zeros_like(all_of[0])
    stderr = (variance / repeats).sqrt()
    total = float(variance.sum())
    return EstimatorRow(name, all_of.mean(0), total, stderr, seconds, expected)


def _phi(q: Distribution) -> list[Tensor]:
    with torch.no_grad():
        z = q.sample() if q.has_enumerate_support else q.mean
    return leaves(q.log_prob(z))


def _nodes(q: Distribution) -> tuple[Tensor, Tensor] | None:
    """Values and weights whose weighted sum is an average over q: a finite list or a quadrature."""
    if q.has_enumerate_support:
        z = q.enumerate_support()
        return z, q.log_prob(z).exp().detach()
    if isinstance(q, Normal):
        at, w = np.polynomial.hermite_e.hermegauss(NODES)
        loc = q.loc
        z = loc + q.scale * torch.as_tensor(at, dtype=loc.dtype, device=loc.device)
        return z, torch.as_tensor(w / math.sqrt(2 * math.pi), dtype=loc.dtype, device=loc.device)
    return None


def _exact(f: Function, q: Distribution) -> Tensor | None:
    nodes = _nodes(q)
    if nodes is None:
        return None
    z, weights = nodes
    with torch.no_grad():
        values = f(z)
    return ((weights * values)[:, None] * scores(q, z.detach())).sum(0)


def _constant(name: str, f: Function, q: Distribution, generator: torch.Generator | None) -> float:
    """The mean or the optimal baseline: exact where q is a list or a line, else from many draws."""
    if not name:
        return 0.0
    nodes = _nodes(q)
    if nodes is None:
        z = draw(q, MANY, split(generator, 1)[0])
        nodes = z, torch.full_like(q.log_prob(z).detach(), 1 / MANY)
    z, weights = nodes[0].detach(), nodes[1]
    with torch.no_grad():
        values = f(z)
    if name == "optimal":
        squares = [scores(q, piece).square().sum(-1) for piece in z.split(BLOCK)]
        weights = weights * torch.cat(squares)
    return float((weights * values).sum() / weights.sum())
