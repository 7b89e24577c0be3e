r"""Approximate marginals of factor graphs that are too dense for elimination.

Belief propagation sends messages between factors and variables until they settle; on a tree they
are exact, on a graph with loops :math:`\log Z` is Bethe's estimate. Mean field takes the product
:math:`q(x) = \prod_iq_i(x_i)` of lowest free energy, whose :math:`\log Z` is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.math.graphs.factor_graph import scores_of


@dataclass(frozen=True)
class Beliefs:
    """Approximate marginals.

    Attributes
    ----------
    marginals : one ``(K,)`` for each variable
    log_partition : Bethe's estimate (belief propagation) or a lower bound (mean field)
    converged : whether messages or marginals settled
    n_iter : rounds
    """

    marginals: list[Tensor]
    log_partition: Tensor
    converged: bool
    n_iter: int


def belief_propagation(
    scopes: Sequence[tuple[int, ...]],
    energies: Sequence[Tensor],
    sizes: Sequence[int],
    *,
    damping: float = 0.0,
    max_iter: int = 200,
    tol: float = 1e-10,
) -> Beliefs:
    r"""Loopy belief propagation (sum-product), all messages at once in each round.

    .. math:: m_{f\to i}(x_i) = \sum_{x_f \setminus x_i}e^{-\theta_f(x_f)}
              \prod_{j \in f \setminus i}m_{j\to f}(x_j),\qquad
              m_{j\to f} = \prod_{g \ni j,\, g \ne f}m_{g\to j}

    Parameters
    ----------
    scopes : variables of each factor
    energies : a table for each factor
    sizes : number of values of each variable
    damping : how much of the last round a message keeps (in logarithms); 0.5 helps where loops make
        messages swing
    max_iter, tol : rounds at most, and largest change of a log message that ends them

    Examples
    --------
    >>> J = -torch.tensor([[0.5, -0.5], [-0.5, 0.5]]).double()
    >>> round(float(belief_propagation([(0, 1), (1, 2)], [J, J], [2, 2, 2]).log_partition), 6)
    2.319671
    """
    scores = [scores_of(e) for e in energies]
    like = scores[0]
    pairs = [(f, v) for f, scope in enumerate(scopes) for v in scope]
    to_variable = {p: like.new_zeros(sizes[p[1]]) for p in pairs}
    around: dict[int, list[int]] = {v: [] for v in range(len(sizes))}
    for f, v in pairs:
        around[v].append(f)
    settled, rounds = False, 0

    def to_factor() -> dict[tuple[int, int], Tensor]:
        total = {
            v: _sum([to_variable[f, v] for f in fs], like, sizes[v]) for v, fs in around.items()
        }
        return {(f, v): torch.log_softmax(total[v] - to_variable[f, v], 0) for f, v in pairs}

    for rounds in range(1, max_iter + 1):  # noqa: B007
        incoming, new = to_factor(), {}
        for f, scope in enumerate(scopes):
            joint = _joint(scores[f], scope, [incoming[f, v] for v in scope])
            for axis, v in enumerate(scope):
                rest = [a for a in range(len(scope)) if a != axis]
                message = (joint.logsumexp(rest) if rest else joint) - incoming[f, v]
                message = torch.log_softmax(message, 0)
                new[f, v] = (1 - damping) * message + damping * to_variable[f, v]
        change = max((float((new[p] - to_variable[p]).abs().max()) for p in pairs), default=0.0)
        to_variable = new
        if change <= tol:
            settled = True
            break
    incoming = to_factor()
    marginals = [
        torch.softmax(_sum([to_variable[f, v] for f in around[v]], like, sizes[v]), 0)
        for v in range(len(sizes))
    ]
    bethe = like.new_zeros(())
    for f, scope in enumerate(scopes):
        joint = _joint(scores[f], scope, [incoming[f, v] for v in scope])
        belief = torch.softmax(joint.flatten(), 0).view(joint.shape)
        bethe = bethe + torch.where(belief > 0, belief * scores[f], 0.0).sum()
        bethe = bethe + torch.special.entr(belief).sum()
    for v, m in enumerate(marginals):
        bethe = bethe - (len(around[v]) - 1) * torch.special.entr(m).sum()
    return Beliefs(marginals, bethe, settled, rounds)


def mean_field(
    scopes: Sequence[tuple[int, ...]],
    energies: Sequence[Tensor],
    sizes: Sequence[int],
    *,
    max_iter: int = 500,
    tol: float = 1e-10,
    start: Sequence[Tensor] | None = None,
) -> Beliefs:
    r"""The product of marginals of lowest free energy that coordinate ascent finds.

    :math:`q_i(x_i) \propto \exp\bigl(-\sum_{f \ni i}\mathbb{E}_{q_{-i}}\theta_f\bigr)`, one variable
    after the other; the bound :math:`\log Z \ge \mathbb{E}_q[-e] + H(q)` never falls.

    Parameters
    ----------
    start : marginals to begin with; None is uniform, but for a little that breaks ties

    Examples
    --------
    >>> J = -torch.tensor([[0.1, -0.1], [-0.1, 0.1]]).double()
    >>> answer = mean_field([(0, 1), (1, 2)], [J, J], [2, 2, 2])
    >>> round(float(answer.log_partition), 4)  # below the exact 2.0894
    2.0794
    """
    scores = [scores_of(e) for e in energies]
    like = scores[0]
    around: dict[int, list[int]] = {v: [] for v in range(len(sizes))}
    for f, scope in enumerate(scopes):
        for v in scope:
            around[v].append(f)
    if start is None:
        start = [
            torch.softmax(1e-3 * torch.arange(k).to(like) * (1 if v % 2 else -1), 0)
            for v, k in enumerate(sizes)
        ]
    q = [s.clone() for s in start]
    settled, rounds = False, 0
    for rounds in range(1, max_iter + 1):  # noqa: B007
        change = 0.0
        for v in range(len(sizes)):
            parts = [_expected(scores[f], scopes[f], q, v) for f in around[v]]
            new = torch.softmax(_sum(parts, like, sizes[v]), 0)
            change = max(change, float((new - q[v]).abs().max()))
            q[v] = new
        if change <= tol:
            settled = True
            break
    bound = sum((torch.special.entr(p).sum() for p in q), like.new_zeros(()))
    for s, scope in zip(scores, scopes, strict=True):
        bound = bound + _expected(s, scope, q, None)
    return Beliefs(q, bound, settled, rounds)


def _sum(parts: list[Tensor], like: Tensor, size: int) -> Tensor:
    return torch.stack(parts).sum(0) if parts else like.new_zeros(size)


def _joint(score: Tensor, scope: tuple[int, ...], messages: list[Tensor]) -> Tensor:
    for axis, message in enumerate(messages):
        score = score + message.view(*(-1 if a == axis else 1 for a in range(len(scope))))
    return score


def _expected(score: Tensor, scope: tuple[int, ...], q: list[Tensor], keep: int | None) -> Tensor:
    """The mean of a table over all of its variables but one."""
    for v in reversed(scope):
        if v != keep:
            axis = list(scope).index(v)
            p = q[v]
            moved = score.movedim(axis, -1)
            score = torch.where(p > 0, moved * p, 0.0).sum(-1)
            scope = tuple(u for u in scope if u != v)
    return score
