r"""Jensen-Shannon divergence: the mean divergence from the mixture, never above log 2 for two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.compute.random import Key, RandomState
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.arrays import as_tensor, to_numpy
from groundstate.math.distributions.operations import minus_log
from groundstate.math.divergences.quadrature import real_line, unit_interval
from groundstate.math.info.entropy import draws, log_prob
from groundstate.math.info.pmf import Estimate, exact, in_base, logarithm, pmf, weighted

_NODES = 2001
_LOWEST = -1e4  # below every logarithm of a float64; keeps 0 · (inf − inf) out


def js(
    *distributions: Any,
    weights: Sequence[float] | None = None,
    base: float | None = None,
    dim: int = -1,
    logits: bool = False,
    n: int = 10_000,
    random_state: RandomState = None,
    stderr: bool = False,
) -> Any:
    r""":math:`JS_w(p_1, \dots, p_K) = \sum_k w_k\,KL(p_k\|m),\ m = \sum_k w_kp_k`.

    The divergence itself, whose square root scipy's ``jensenshannon`` returns. At the best
    discriminator the value of a GAN is :math:`2\,JS - 2\log 2`. Continuous distributions of one
    variable are integrated numerically where their quantiles or moments are known; others are
    averaged over ``n`` draws of each.

    Parameters
    ----------
    distributions : two or more tables, or torch distributions
    weights : of the mixture, equal unless given
    base, dim, logits, n, random_state, stderr : as in `kl`

    Examples
    --------
    >>> round(js([0.5, 0.5], [0.9, 0.1]), 6), round(js([1, 0], [0, 1], base=2), 6)
    (0.101749, 1.0)
    >>> from torch.distributions import Normal
    >>> round(float(js(Normal(0.0, 1.0), Normal(2.0, 1.0))), 4)
    0.3368
    """
    count = len(distributions)
    if count < 2:
        raise ValueError(f"js compares two or more distributions, got {count}")
    w = [1.0] * count if weights is None else [float(v) for v in weights]
    if len(w) != count or min(w) < 0 or sum(w) <= 0:
        raise ValueError(f"weights must be {count} non-negative numbers, got {weights!r}")
    w = [v / sum(w) for v in w]
    given = [isinstance(p, Distribution) for p in distributions]
    if all(given):
        return _of_distributions(distributions, w, base, n, random_state, stderr)
    if any(given):
        raise Unsupported("js takes tables or torch distributions, not both at once")
    like = next((p for p in distributions if isinstance(p, Tensor)), None)
    names = "pqrstuvw" if count <= 8 else [f"distribution {k}" for k in range(count)]
    tables = [
        as_tensor(p, name, like, finite=False)
        for p, name in zip(distributions, names, strict=False)
    ]
    if len({table.shape[dim] for table in tables if table.ndim}) > 1:
        raise ShapeError(f"tables need the same values, got {[tuple(t.shape) for t in tables]}")
    parts = [
        pmf(table, name, dim, logits=logits) for table, name in zip(tables, names, strict=False)
    ]
    mixture: Any = sum(v * part.p for v, part in zip(w, parts, strict=True))
    value: Any = sum(
        v * weighted(part.p, part.log.clamp_min(_LOWEST) - logarithm(mixture)).sum(dim)
        for v, part in zip(w, parts, strict=True)
        if v > 0
    )
    out = exact(value.clamp_min(0.0), base, stderr)
    return out if like is not None else to_numpy(out)


def _of_distributions(
    distributions: Sequence[Distribution],
    w: list[float],
    base: float | None,
    n: int,
    random_state: RandomState,
    stderr: bool,
) -> Tensor | Estimate:
    key = Key.of(random_state)
    values, errors = [], []
    for k, p in enumerate(distributions):
        if w[k] == 0:
            continue
        grid = _grid(p)
        x = draws(p, n, key.fold(k)) if grid is None else grid[0]
        logs = [
            math.log(v) - minus_log(other, x)
            for v, other in zip(w, distributions, strict=True)
            if v > 0
        ]
        each = log_prob(p, x) - torch.logsumexp(torch.stack(logs), 0)
        if grid is None:
            values.append(w[k] * each.mean(0))
            errors.append(w[k] ** 2 * each.var(0) / n)
        else:
            values.append(w[k] * weighted(grid[1], each).sum(0))
            errors.append(torch.zeros_like(values[-1]))
    value = in_base(torch.stack(values).sum(0), base)
    spread = in_base(torch.stack(errors).sum(0).sqrt(), base)
    return Estimate(value, spread) if stderr else value


def _grid(p: Distribution) -> tuple[Tensor, Tensor] | None:
    """Points and their probabilities for an integral of one variable; None: draw instead."""
    if p.event_shape or getattr(p.support, "is_discrete", False):
        return None
    shape = (-1, *(1,) * len(p.batch_shape))
    try:
        like = p.icdf(torch.tensor(0.5))
        t, chance = unit_interval(_NODES, like)
        return p.icdf(t.reshape(shape).expand(-1, *p.batch_shape)), chance.reshape(shape)
    except NotImplementedError:
        pass
    support = getattr(p.support, "base_constraint", p.support)  # of a mixture
    if support is not constraints.real:
        return None
    try:
        mean, scale = p.mean.detach(), p.stddev.detach()
    except NotImplementedError:
        return None
    u, width = real_line(_NODES, mean)
    x = mean + scale * u.reshape(shape)
    return x, scale * width.reshape(shape) * log_prob(p, x).exp()
