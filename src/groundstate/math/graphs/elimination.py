r"""Sums and maxima over many discrete variables, one variable after the other.

.. math:: \log Z = \log\sum_x \exp\Bigl(-\sum_f \theta_f(x_f)\Bigr)

Eliminating :math:`x_v` joins the factors that mention it into one table over their variables (the
bucket) and replaces them by its log-sum-exp (or maximum) over :math:`x_v`. Going back through the
buckets gives the best values or an exact draw; the gradient of :math:`\log Z` gives every marginal.
The cost is the largest bucket, which the order decides: min-fill.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import Unsupported

Scopes = tuple[tuple[int, ...], ...]
LARGEST = 2**27  # numbers in one bucket
NEVER = -1e30  # log of 0: finite, so that gradients are; sums of many still are


@lru_cache(maxsize=1024)
def elimination_order(
    scopes: Scopes, sizes: tuple[int, ...], keep: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """An order of the variables but ``keep`` that joins few new pairs (min-fill), small tables first.

    >>> elimination_order(((0, 1), (1, 2), (2, 3)), (2, 2, 2, 2), (1,))
    (0, 3, 2)
    """
    near: dict[int, set[int]] = {v: set() for scope in scopes for v in scope}
    for scope in scopes:
        for v in scope:
            near[v].update(scope)
    for v in near:
        near[v].discard(v)

    def cost(v: int) -> tuple[int, float, int]:
        around = near[v]
        fill = sum(b not in near[a] for a, b in combinations(around, 2))
        return fill, sum(math.log(sizes[u]) for u in around), v

    costs = {v: cost(v) for v in near if v not in keep}
    order = []
    while costs:
        v = min(costs, key=costs.__getitem__)
        around = near.pop(v)
        del costs[v]
        order.append(v)
        touched = set(around)
        for a in around:
            near[a] |= around
            near[a] -= {a, v}
            touched |= near[a]
        for u in touched & costs.keys():
            costs[u] = cost(u)
    return tuple(order)


@dataclass(frozen=True)
class Step:
    """One elimination: the tables that are joined, how they are viewed, and the bucket's scope."""

    variable: int
    members: tuple[int, ...]  # numbers of tables; steps add tables behind the given ones
    views: tuple[tuple[int, ...], ...]  # of each member, with ones for what it lacks
    others: tuple[int, ...]  # scope of the bucket but for the variable, which comes last
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """How to contract: how each given table is turned, the steps, and tables that are left over."""

    turns: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    rest: tuple[tuple[int, tuple[int, ...]], ...]  # table, and its view over what is kept

    @property
    def largest(self) -> int:
        """Numbers in the largest bucket of a row."""
        return max((math.prod(map(max, zip(*s.views, strict=True))) for s in self.steps), default=1)


@lru_cache(maxsize=1024)
def plan_of(scopes: Scopes, sizes: tuple[int, ...], keep: tuple[int, ...] = ()) -> Plan:
    """The steps that leave the variables ``keep``, in their order."""
    order = elimination_order(scopes, sizes, keep)
    # what goes first comes last in every table, so that each step reduces the last axis
    at = {v: k for k, v in enumerate((*keep, *reversed(order)))}
    held = [tuple(sorted(scope, key=at.__getitem__)) for scope in scopes]
    turns = tuple(
        tuple(scope.index(v) for v in turned) for scope, turned in zip(scopes, held, strict=True)
    )
    alive = set(range(len(held)))
    where: dict[int, set[int]] = {v: set() for v in at}
    for k, scope in enumerate(held):
        for v in scope:
            where[v].add(k)
    steps = []
    for v in order:
        members = tuple(sorted(where[v]))
        scope = tuple(sorted({u for k in members for u in held[k]}, key=at.__getitem__))
        views = tuple(tuple(sizes[u] if u in held[k] else 1 for u in scope) for k in members)
        others = scope[:-1]
        strides = tuple(math.prod(sizes[u] for u in others[k + 1 :]) for k in range(len(others)))
        steps.append(Step(v, members, views, others, strides))
        alive.difference_update(members)
        for k in members:
            for u in held[k]:
                where[u].discard(k)
        held.append(others)
        alive.add(len(held) - 1)
        for u in others:
            where[u].add(len(held) - 1)
    rest = tuple((k, tuple(sizes[u] if u in held[k] else 1 for u in keep)) for k in sorted(alive))
    return Plan(turns, tuple(steps), rest)


class Contraction:
    """Buckets of an elimination, for a batch of rows.

    Parameters
    ----------
    scopes : the variables of each factor, one axis each
    scores : −energies of each factor, ``(B, *sizes)`` or ``(1, *sizes)``
    sizes : number of values of each variable
    keep : variables that are left, in the order of the axes of ``value``
    best : maxima instead of sums

    Attributes
    ----------
    value : log of the sum (or the highest score) over all but ``keep``, ``(B, *sizes of keep)``

    Examples
    --------
    >>> coin = torch.tensor([[0.4, 0.6]]).log()
    >>> Contraction(((0,), (0,)), [coin, coin], (2,)).value.exp()
    tensor([0.5200])
    """

    def __init__(
        self,
        scopes: Sequence[tuple[int, ...]],
        scores: Sequence[Tensor],
        sizes: tuple[int, ...],
        keep: tuple[int, ...] = (),
        *,
        best: bool = False,
    ) -> None:
        self.plan = plan_of(tuple(scopes), sizes, keep)
        if self.plan.largest > LARGEST:
            raise Unsupported(
                f"exact elimination needs a table of {self.plan.largest:.3g} numbers, more than "
                f"{LARGEST:.3g}: the graph is too dense; observe more variables, or ask by loopy "
                "belief propagation, mean field or Gibbs sampling"
            )
        tables = [
            s if turn == tuple(range(len(turn))) else s.permute(0, *(1 + k for k in turn))
            for s, turn in zip(scores, self.plan.turns, strict=True)
        ]
        self.buckets: list[Tensor] = []
        for step in self.plan.steps:
            parts = [
                tables[k].reshape(len(tables[k]), *view)
                for k, view in zip(step.members, step.views, strict=True)
            ]
            bucket = reduce(torch.add, parts)
            tables.append(bucket.amax(-1) if best else bucket.logsumexp(-1))
            self.buckets.append(bucket)
        last = [tables[k].reshape(len(tables[k]), *view) for k, view in self.plan.rest]
        self.value: Tensor = reduce(torch.add, last)

    def back(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """Values from the last eliminated to the first, written into rows ``x`` ``(B, D)`` int64.

        Parameters
        ----------
        noise : uniform numbers ``(B, D)`` for a draw; None takes the best value
        """
        for step, bucket in zip(reversed(self.plan.steps), reversed(self.buckets), strict=True):
            b, k = bucket.shape[0], bucket.shape[-1]
            at = torch.zeros(len(x), dtype=torch.int64, device=x.device)
            for u, stride in zip(step.others, step.strides, strict=True):
                at = at + x[:, u] * stride
            flat = bucket.reshape(b, -1, k)
            row = flat[0, at] if b == 1 else flat[torch.arange(b, device=x.device), at]  # (B, K)
            x[:, step.variable] = (
                row.argmax(-1) if noise is None else invert(row, noise[:, step.variable])
            )
        return x


def contract(
    scopes: Sequence[tuple[int, ...]],
    tables: Sequence[NDArray[np.float64]],
    sizes: tuple[int, ...],
    keep: tuple[int, ...] = (),
) -> tuple[NDArray[np.float64], float]:
    """Sums of products of probabilities over all but ``keep``, for one row on the host.

    ``Contraction`` in probabilities instead of logarithms: each step is one product and one sum of small
    arrays, kept near 1 by a scale.

    Returns
    -------
    the table over ``keep``, and the logarithm of what it is to be multiplied by

    >>> coin = np.array([0.4, 0.6])
    >>> contract(((0,), (0,)), [coin, coin], (2,))[0].round(2).item()
    0.52
    """
    plan = plan_of(tuple(scopes), sizes, keep)
    if plan.largest > LARGEST:
        raise Unsupported(f"exact elimination needs a table of {plan.largest:.3g} numbers")
    held = [t.transpose(turn) for t, turn in zip(tables, plan.turns, strict=True)]
    log_scale = 0.0
    for step in plan.steps:
        bucket = held[step.members[0]].reshape(step.views[0])
        for k, view in zip(step.members[1:], step.views[1:], strict=True):
            bucket = bucket * held[k].reshape(view)
        new = np.add.reduce(bucket, -1)
        top = float(new.max())
        if 0.0 < top < 1e-50:
            new = new / top
            log_scale += math.log(top)
        held.append(new)
    value = np.ones(())
    for k, view in plan.rest:
        value = value * held[k].reshape(view)
    return value, log_scale


def invert(logits: Tensor, u: Tensor) -> Tensor:
    """Values of categorical distributions at uniform numbers, ``(B,)`` int64."""
    p = torch.softmax(logits.double(), -1)
    cut = u.double()[:, None] * p.sum(-1, keepdim=True)
    found = (p.cumsum(-1) <= cut).sum(-1)
    last = p.shape[-1] - 1 - (p.flip(-1) > 0).int().argmax(-1)  # never a value of probability 0
    return torch.minimum(found, last)
