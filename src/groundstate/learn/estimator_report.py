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
from groundstate.learn.estimators import Function, leaves, per_value, place, scores
from groundstate.math.laws import draw

BLOCK = 4096  # draws whose gradients are taken at once
NODES = 64  # of Gauss-Hermite quadrature


@dataclass(frozen=True)
class EstimatorRow:
    """One estimator of :math:`\\nabla_\\varphi E_q[f]`.

    Attributes
    ----------
    name : "exact", "score function", "score function, mean", ..., "pathwise"
    mean : average estimate, ``(P,)``
    variance : total variance of one estimate from n draws (the sum over coordinates)
    stderr : standard error of ``mean``, ``(P,)``
    seconds : time of one estimate
    """

    name: str
    mean: Tensor
    variance: float
    stderr: Tensor
    seconds: float


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
    q : one law (batch shape ``()``) whose parameters require gradients
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
            f"compare_estimators takes one law, got batch shape {tuple(q.batch_shape)}"
        )
    rows = []
    start = time.perf_counter()
    exact = _exact(f, q)
    if exact is not None:
        seconds = time.perf_counter() - start
        rows.append(EstimatorRow("exact", exact, 0.0, torch.zeros_like(exact), seconds))
    names: list[str | None] = [None, "mean", "optimal"] + (["leave_one_out"] if n > 1 else [])
    for name in names:
        fixed = _constant(name, f, q, generator) if name in ("mean", "optimal") else 0.0
        title = "score function" + (f", {name}" if name else "")

        def estimate(count: int, own: torch.Generator, name: str | None = name, b: float = fixed) -> Tensor:
            z = draw(q, count, own)
            with torch.no_grad():
                values = f(z)
            if name == "leave_one_out":
                groups = values.reshape(-1, n)
                b_ = ((groups.sum(1, keepdim=True) - groups) / (n - 1)).reshape(-1)
                return (values - b_)[:, None] * scores(q, z)
            return (values - b)[:, None] * scores(q, z)

        rows.append(_repeat(title, estimate, n, repeats, generator))
    if q.has_rsample:

        def through(count: int, own: torch.Generator) -> Tensor:
            values = f(place(q, count, own))
            return per_value(values, _phi(q))

        rows.append(_repeat("pathwise", through, n, repeats, generator))
    return rows


def _repeat(
    name: str,
    estimate: Callable[[int, torch.Generator], Tensor],
    n: int,
    repeats: int,
    generator: torch.Generator | None,
) -> EstimatorRow:
    (own,) = split(generator, 1)
    per_block = max(1, BLOCK // n)
    found, start = [], time.perf_counter()
    for first in range(0, repeats, per_block):
        count = min(per_block, repeats - first)
        each = estimate(count * n, own)  # (count*n, P)
        found.append(each.view(count, n, -1).mean(1))
    seconds = (time.perf_counter() - start) / repeats
    all_of = torch.cat(found)  # (repeats, P)
    variance = all_of.var(0) if repeats > 1 else torch.zeros_like(all_of[0])
    stderr = (variance / repeats).sqrt()
    return EstimatorRow(name, all_of.mean(0), float(variance.sum()), stderr, seconds)


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
        loc = q.loc.detach()
        z = loc + q.scale.detach() * torch.as_tensor(at, dtype=loc.dtype, device=loc.device)
        return z, torch.as_tensor(w / math.sqrt(2 * math.pi), dtype=loc.dtype, device=loc.device)
    return None


def _exact(f: Function, q: Distribution) -> Tensor | None:
    nodes = _nodes(q)
    if nodes is None:
        return None
    z, weights = nodes
    with torch.no_grad():
        values = f(z)
    return ((weights * values)[:, None] * scores(q, z)).sum(0)


def _constant(
    name: str | None, f: Function, q: Distribution, generator: torch.Generator | None
) -> float:
    """The mean or the optimal baseline: exact where q is a list or a line, else from many draws."""
    nodes = _nodes(q)
    if nodes is None:
        z = draw(q, BLOCK, split(generator, 1)[0])
        nodes = z, torch.full((BLOCK,), 1 / BLOCK)
    z, weights = nodes
    with torch.no_grad():
        values = f(z)
    if name == "mean":
        return float((weights * values).sum())
    weights = weights * scores(q, z).square().sum(-1)
    return float((weights * values).sum() / weights.sum())


__all__ = ["EstimatorRow", "compare_estimators"]
