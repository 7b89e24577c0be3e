r"""The PC algorithm: arrows from tests of conditional independence (Spirtes, Glymour, Scheines)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from groundstate.learn.structure.scores import F64, DiscreteBIC

Independence = Callable[[int, int, tuple[int, ...]], float]


@dataclass(frozen=True)
class PartialDAG:
    """What data can tell of a graph: arrows, and edges whose direction is open.

    Attributes
    ----------
    n : number of variables
    directed : arrows (from, to)
    undirected : edges (i, j), i < j
    separating : for pairs without an edge, a set that makes them independent
    """

    n: int
    directed: frozenset[tuple[int, int]]
    undirected: frozenset[tuple[int, int]]
    separating: dict[tuple[int, int], tuple[int, ...]]

    @property
    def skeleton(self) -> frozenset[tuple[int, int]]:
        """All edges without direction, i < j."""
        return self.undirected | {(min(e), max(e)) for e in self.directed}

    def dag(self) -> list[list[int]]:
        """Parents of each node in a graph that completes the open edges without a new collider.

        Where tests contradict each other and there is none, open edges go from low to high numbers,
        and arrows that close a circle are turned.
        """
        arrows, open_edges = set(self.directed), set(self.undirected)
        left = set(range(self.n))
        placed: set[tuple[int, int]] = set(arrows)
        while left:  # Dor and Tarsi: a sink whose open neighbours touch all its neighbours
            for v in sorted(left, reverse=True):
                near = {a if b == v else b for a, b in open_edges if v in (a, b)}
                into = {a for a, b in arrows if b == v}
                if any(a == v for a, b in arrows) or not all(
                    _touch(u, w, arrows, open_edges) for u in near for w in (near | into) - {u}
                ):
                    continue
                placed |= {(u, v) for u in near}
                arrows = {e for e in arrows if v not in e}
                open_edges = {e for e in open_edges if v not in e}
                left.discard(v)
                break
            else:
                break
        if left:
            placed |= open_edges
        parents: list[set[int]] = [set() for _ in range(self.n)]
        for a, b in sorted(placed):
            back = _reaches(parents, a, b)
            (parents[a] if back else parents[b]).add(b if back else a)
        return [sorted(p) for p in parents]


def _touch(u: int, w: int, arrows: set[tuple[int, int]], edges: set[tuple[int, int]]) -> bool:
    return (min(u, w), max(u, w)) in edges or (u, w) in arrows or (w, u) in arrows


def _reaches(parents: list[set[int]], below: int, above: int) -> bool:
    """Whether arrows lead from ``above`` down to ``below``."""
    waiting, seen = [below], set()
    while waiting:
        i = waiting.pop()
        if i == above:
            return True
        if i not in seen:
            seen.add(i)
            waiting += parents[i]
    return False


def g_test(
    x: NDArray[np.int64], levels: Sequence[int], weight: F64 | None = None, statistic: str = "g2"
) -> Independence:
    r"""p-values of :math:`X \perp Y \mid Z` for columns of levels.

    :math:`G^2 = 2\sum n\log(n/\hat n)` or :math:`\chi^2 = \sum(n - \hat n)^2/\hat n`, summed over the
    joint values of Z that occur; degrees of freedom are those of the levels that occur there.
    """
    if statistic not in ("g2", "chi2"):
        raise ValueError(f"statistic must be 'g2' or 'chi2', got {statistic!r}")
    table = DiscreteBIC(x, levels, weight)

    def p_value(a: int, b: int, z: tuple[int, ...]) -> float:
        n = _counts(table, a, b, z)
        row, column = n.sum(2, keepdims=True), n.sum(1, keepdims=True)
        total = n.sum((1, 2), keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = np.where(total > 0, row * column / total, 0.0)
            if statistic == "g2":
                value = 2 * np.where(n > 0, n * np.log(n / expected), 0.0).sum()
            else:
                value = np.where(expected > 0, (n - expected) ** 2 / expected, 0.0).sum()
        free = ((row > 0).sum((1, 2)) - 1).clip(0) * ((column > 0).sum((1, 2)) - 1).clip(0)
        freedom = int(free.sum())
        return float(chi2.sf(value, freedom)) if freedom else 1.0

    return p_value


def _counts(table: DiscreteBIC, a: int, b: int, z: tuple[int, ...]) -> F64:
    """Counts of a and b at the joint values of Z that occur, ``(q, levels of b, levels of a)``."""
    code = np.zeros(table.x.shape[1], np.int64)
    for v in z:
        code = code * table.levels[v] + table.x[v]
    if z:
        _, code = np.unique(code, return_inverse=True)
    ka, kb = table.levels[a], table.levels[b]
    flat = (code * kb + table.x[b]) * ka + table.x[a]
    size = (int(code.max(initial=0)) + 1) * ka * kb
    return np.bincount(flat, table.weight, minlength=size).astype(np.float64).reshape(-1, kb, ka)


def pc(
    n: int,
    independence: Independence,
    *,
    alpha: float = 0.05,
    max_conditioning: int | None = None,
) -> PartialDAG:
    """Remove edges between variables that some set makes independent, then orient what must be.

    The order of the columns does not matter for the edges (the stable variant): neighbours are fixed
    while sets of one size are tried.

    Parameters
    ----------
    n : number of variables
    independence : p-value of "a and b are independent given z", such as ``g_test``
    alpha : an edge stays where every p-value is at most this
    max_conditioning : largest set tried; None is no limit

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.integers(0, 2, (2, 2000))
    >>> x = np.column_stack([a, b, (a | b) ^ (rng.random(2000) < 0.05)])
    >>> sorted(pc(3, g_test(x, [2, 2, 2])).directed)  # a collider is seen
    [(0, 2), (1, 2)]
    """
    near = {i: set(range(n)) - {i} for i in range(n)}
    separating: dict[tuple[int, int], tuple[int, ...]] = {}
    size = 0
    while any(len(near[i]) > size for i in range(n)):
        if max_conditioning is not None and size > max_conditioning:
            break
        fixed = {i: sorted(near[i]) for i in range(n)}
        for i in range(n):
            for j in fixed[i]:
                if j not in near[i]:
                    continue
                for z in combinations([k for k in fixed[i] if k != j], size):
                    if independence(min(i, j), max(i, j), z) > alpha:
                        near[i].discard(j)
                        near[j].discard(i)
                        separating[min(i, j), max(i, j)] = z
                        break
        size += 1
    return _oriented(n, near, separating)


def _oriented(
    n: int, near: dict[int, set[int]], separating: dict[tuple[int, int], tuple[int, ...]]
) -> PartialDAG:
    arrows: set[tuple[int, int]] = set()
    for k in range(n):  # colliders: k is in no set that separates its neighbours
        for i, j in combinations(sorted(near[k]), 2):
            if j not in near[i] and k not in separating.get((i, j), ()):
                for a in (i, j):
                    if (k, a) not in arrows:
                        arrows.add((a, k))
    changed = True
    while changed:  # Meek's rules
        changed = False
        for a, b in permutations(range(n), 2):
            if b not in near[a] or (a, b) in arrows or (b, a) in arrows:
                continue
            into = {c for c in near[a] if (c, a) in arrows}
            first = any(c not in near[b] for c in into - {b})
            second = any((a, c) in arrows and (c, b) in arrows for c in near[a] & near[b])
            open_ = [c for c in near[a] & near[b] if (c, b) in arrows and _is_open(a, c, arrows)]
            third = any(d not in near[c] for c, d in combinations(open_, 2))
            if first or second or third:
                arrows.add((a, b))
                changed = True
    edges = {(i, j) for i in range(n) for j in near[i] if i < j}
    undirected = {e for e in edges if e not in arrows and e[::-1] not in arrows}
    return PartialDAG(n, frozenset(arrows), frozenset(undirected), separating)


def _is_open(a: int, c: int, arrows: set[tuple[int, int]]) -> bool:
    return (a, c) not in arrows and (c, a) not in arrows
