r"""Search among directed graphs: add, delete or reverse one arrow at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from groundstate.learn.structure.scores import FamilyScore
from groundstate.math.graphs.dags import children_of, topological_order

Move = tuple[str, int, int]  # what, from, to


def hill_climb(
    score: FamilyScore,
    *,
    start: Sequence[Sequence[int]] | None = None,
    max_parents: int | None = None,
    tabu: int = 100,
    patience: int = 10,
    tol: float = 1e-6,
    max_iter: int = 10_000,
) -> list[list[int]]:
    """Parents of each node in the best graph found.

    Every step takes the best change that is not forbidden; the opposites of the last ``tabu`` changes
    are. Steps that lower the score are taken too (to leave a local optimum), up to ``patience`` in a
    row without a new best graph. A change touches one family or two, so each step recomputes few scores.

    Parameters
    ----------
    score : ``DiscreteBIC``, ``BDeu`` or ``GaussianBIC``
    start : parents of each node to begin with; None is no arrow at all
    max_parents : of a node
    tabu : changes that must not be undone; 0 is plain hill climbing
    patience : steps without a new best; of plain hill climbing 0
    tol : smallest gain that counts
    max_iter : steps at most

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate.learn.structure import DiscreteBIC
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 500)
    >>> x = np.column_stack([a, a ^ (rng.random(500) < 0.1), rng.integers(0, 2, 500)])
    >>> hill_climb(DiscreteBIC(x, [2, 2, 2]))
    [[], [0], []]
    """
    d = score.n_variables
    now = [set(above) for above in start] if start is not None else [set() for _ in range(d)]
    topological_order([sorted(above) for above in now])
    most = d if max_parents is None else max_parents
    own = [score.family(i, now[i]) for i in range(d)]
    best, best_value, value = [set(a) for a in now], sum(own), sum(own)
    forbidden: deque[Move] = deque(maxlen=tabu) if tabu else deque(maxlen=1)
    idle = 0
    for _ in range(max_iter):
        reach = _descendants(now)
        top: tuple[float, Move] | None = None
        for move in _moves(now, reach, most):
            if tabu and move in forbidden:
                continue
            gain = _gain(score, now, own, move)
            if top is None or gain > top[0] + 1e-12:
                top = (gain, move)
        if top is None or (not tabu and top[0] <= tol):
            break
        gain, move = top
        _apply(now, move)
        _, a, b = move
        own[a], own[b] = score.family(a, now[a]), score.family(b, now[b])
        forbidden.append(_opposite(move))
        value += gain
        if value > best_value + tol:
            best, best_value, idle = [set(p) for p in now], value, 0
        else:
            idle += 1
            if idle > patience:
                break
    return [sorted(above) for above in best]


def _descendants(parents: list[set[int]]) -> list[set[int]]:
    lists = [sorted(p) for p in parents]
    children = children_of(lists)
    reach: list[set[int]] = [set() for _ in parents]
    for i in reversed(topological_order(lists)):
        for c in children[i]:
            reach[i] |= {c} | reach[c]
    return reach


def _moves(now: list[set[int]], reach: list[set[int]], most: int) -> Iterator[Move]:
    """Changes that leave no circle and not too many parents."""
    d = len(now)
    for a in range(d):
        for b in range(d):
            if a == b:
                continue
            if a in now[b]:
                yield ("delete", a, b)
                # reversed, a circle closes if b is reached from a on another way
                around = any(b in reach[c] for c in reach[a] if a in now[c] and c != b)
                if not around and len(now[a]) < most:
                    yield ("reverse", a, b)
            elif b not in now[a] and a not in reach[b] and len(now[b]) < most:
                yield ("add", a, b)


def _gain(score: FamilyScore, now: list[set[int]], own: list[float], move: Move) -> float:
    kind, a, b = move
    if kind == "add":
        return score.family(b, now[b] | {a}) - own[b]
    gain = score.family(b, now[b] - {a}) - own[b]
    return gain if kind == "delete" else gain + score.family(a, now[a] | {b}) - own[a]


def _apply(now: list[set[int]], move: Move) -> None:
    kind, a, b = move
    if kind == "add":
        now[b].add(a)
        return
    now[b].discard(a)
    if kind == "reverse":
        now[a].add(b)


def _opposite(move: Move) -> Move:
    kind, a, b = move
    if kind == "reverse":
        return ("reverse", b, a)
    return ("delete" if kind == "add" else "add", a, b)
