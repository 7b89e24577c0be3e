r"""Negatives that are listed, taken from the batch, or drawn from a proposal; and reductions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from groundstate.compute.reduce import current
from groundstate.energy.base import Energy
from groundstate.learn.base import Batch
from groundstate.learn.rules.common import Plan, index_of, listable, table_of
from groundstate.learn.rules.negatives.proposals import ProposalLike, Proposer

Reduce = Literal["min", "mean"] | float  # a float is the temperature of a soft minimum


@dataclass(frozen=True)
class Negatives:
    """Energies ``(n, B)`` of the negatives, and log weights ``(n, B)`` when not all count alike."""

    energy: Tensor
    log_weight: Tensor | None = None


def reduce(negatives: Negatives, how: Reduce) -> Tensor:
    r"""R, ``(B,)``: the minimum, the mean, or :math:`-T\log\sum_j w_j e^{-e_j/T}`.

    Without weights the soft minimum is a sum, as for a list of all values.

    >>> e = torch.tensor([[1.0], [2.0], [3.0]])
    >>> [round(float(reduce(Negatives(e), how)), 4) for how in ("min", "mean", 1.0)]
    [1.0, 2.0, 0.5924]
    """
    e, log_w = negatives.energy, negatives.log_weight
    counts = None if log_w is None else log_w > -math.inf
    if how == "min" or how == 0:
        return (e if counts is None else torch.where(counts, e, math.inf)).min(0).values
    if how == "mean" or how == math.inf:
        if log_w is None:
            return e.mean(0)
        w = torch.softmax(log_w, 0)
        return (w * torch.where(w > 0, e, 0.0)).sum(0)
    T = float(how)
    if T == 1.0:
        return -torch.logsumexp(-e if log_w is None else log_w - e, 0)
    return -T * torch.logsumexp(e * (-1 / T) if log_w is None else log_w - e / T, 0)


class Source(nn.Module, ABC):
    """Where negatives come from; may hold networks or chains."""

    exact: bool = False
    is_objective: bool = True

    def reason_against(self, view: Energy, over: tuple[str, ...]) -> str | None:
        """Why this source cannot serve this energy (latents hidden), or None. Computes nothing."""
        return None

    @abstractmethod
    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        """Energies of the negatives of every row."""


def evaluate(
    plan: Plan, batch: Batch, values: dict[str, Tensor], generator: torch.Generator | None
) -> Tensor:
    """Energies ``(n, B)`` of values ``(n, B, *event)`` with everything else as in the batch."""
    n, b = next(iter(values.values())).shape[:2]
    rows = {name: batch[name] for name in plan.given}
    if n > 1:
        rows = {name: v.repeat(n, *(1,) * (v.ndim - 1)) for name, v in rows.items()}
    rows |= {name: v.reshape(n * b, *v.shape[2:]) for name, v in values.items()}
    return plan.positive(rows, generator).view(n, b)


def _list_reason(energy: Energy, over: tuple[str, ...]) -> str | None:
    if listable(energy, over):
        return None
    names = ", ".join(over)
    return f"the values of {names} cannot be listed; use Proposal, Chain or InBatch negatives"


class All(Source):
    """Every value of a listable variable, the row's own included."""

    exact = True

    def reason_against(self, view: Energy, over: tuple[str, ...]) -> str | None:
        return _list_reason(view, over)

    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        return Negatives(_table(plan, batch)[0].T)


class Wrong(Source):
    """Every value of a listable variable but the row's own."""

    exact = True

    def reason_against(self, view: Energy, over: tuple[str, ...]) -> str | None:
        return _list_reason(view, over)

    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        e, y = _table(plan, batch)
        log_w = torch.zeros_like(e).scatter(1, y[:, None], -math.inf)
        return Negatives(e.T, log_w.T)


def _table(plan: Plan, batch: Batch) -> tuple[Tensor, Tensor]:
    name = plan.over[0]
    y = index_of(plan.view.spaces[name], batch[name])
    e = table_of(plan.view, name)(**plan.known(batch))  # (B, K)
    return e.expand(len(y), -1), y


class InBatch(Source):
    """The distinct values that the rows of the batch hold: every row is contrasted with the others.

    Distinct, so that a row that comes twice counts once among the negatives and a weight of 2
    stays the row twice. Where the rows are spread over processes, the values of all are gathered.
    """

    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        b = batch[plan.over[0]].shape[0]
        everywhere = current()
        if len(plan.over) == 1 and plan.view.ability("table", plan.over[0]) is not None:
            e, y = _table(plan, batch)
            return Negatives(e[:, torch.unique(everywhere.gather(y))].T)
        values = {name: everywhere.gather(batch[name]) for name in plan.over}
        index = distinct(list(values.values()))
        values = {name: v[index][:, None].expand(-1, b, *v.shape[1:]) for name, v in values.items()}
        return Negatives(evaluate(plan, batch, values, generator))


def distinct(values: list[Tensor]) -> Tensor:
    """One row index for every distinct joint value, in order of appearance."""
    codes = torch.stack([torch.unique(v, dim=0, return_inverse=True)[1] for v in values], 1)
    _, inverse = torch.unique(codes, dim=0, return_inverse=True)
    rows = torch.arange(len(inverse), device=inverse.device)
    first = torch.full_like(rows, len(rows)).scatter_reduce(0, inverse, rows, "amin")
    return first[first < len(rows)].sort().values


class Proposal(Source):
    r"""``n`` draws from a distribution q, weighted so that their sum estimates the normaliser.

    On finite spaces :math:`\hat Z = e^{-e_y} + \frac1n\sum_{v_j \ne y} e^{-e(v_j)}/q(v_j)`, which
    is unbiased, and exact for a uniform q and all K values without replacement. On a continuum the
    row's own value joins the draws, :math:`\hat Z = \frac1{n+1}\sum_{j=0}^n e^{-e(v_j)}/q(v_j)`,
    which keeps the loss bounded below and is consistent as n grows.

    Parameters
    ----------
    q : distribution, mapping, function or None
        See ``Proposer``.
    n : int, default=64
    """

    def __init__(self, q: ProposalLike | None = None, n: int = 64) -> None:
        super().__init__()
        if n < 1:
            raise ValueError(f"at least one draw is needed, got n={n}")
        self.q: Any = q
        self.n = n

    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        proposer = Proposer(energy, plan.over, batch, self.q)
        drawn = proposer.draw(self.n, generator, shared=True)
        own = {name: batch[name][None] for name in plan.over}
        values = {name: torch.cat([own[name], v]) for name, v in drawn.values.items()}
        e = evaluate(plan, batch, values, generator)  # (n + 1, B)
        if proposer.is_finite:
            weight = (-drawn.log_q - math.log(self.n)).masked_fill(proposer.hits(drawn), -math.inf)
            log_w = torch.cat([torch.zeros_like(weight[:1]), weight])
        else:
            log_q = torch.cat([proposer.log_prob(batch)[None], drawn.log_q])
            log_w = -log_q - math.log(self.n + 1)
        return Negatives(e, log_w)
