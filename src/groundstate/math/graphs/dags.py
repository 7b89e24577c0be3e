r"""Directed graphs without cycles: what follows from what, and what is independent of what.

A graph is given by the parents of its nodes 0, 1, 2, ...: ``parents[i]`` lists the nodes with an
arrow to i. :math:`X \perp Y \mid Z` holds in every distribution :math:`\prod_i p(x_i \mid x_{pa(i)})`
exactly when Z separates X and Y in the graph (d-separation).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

Parents = Sequence[Sequence[int]]


def topological_order(parents: Parents) -> list[int]:
    """Every node behind its parents, the lowest number first where there is a choice.

    >>> topological_order([[1, 2], [2], []])
    [2, 1, 0]
    """
    waiting = {i: set(p) for i, p in enumerate(parents)}
    order: list[int] = []
    while waiting:
        free = [i for i, p in waiting.items() if not p]
        if not free:
            raise ValueError(
                f"the arrows among the nodes {sorted(find_cycle(parents))} go in a circle; remove one"
            )
        for i in free:
            del waiting[i]
        order += free
        for p in waiting.values():
            p.difference_update(free)
    return order


def find_cycle(parents: Parents) -> list[int]:
    """Nodes along one circle of arrows, each a parent of the next; empty where there is none.

    >>> find_cycle([[1], [2], [0]]), find_cycle([[], [0]])
    ([0, 2, 1], [])
    """
    waiting = {i: set(p) for i, p in enumerate(parents)}
    while True:
        free = [i for i, p in waiting.items() if not p]
        if not free:
            break
        for i in free:
            del waiting[i]
        for p in waiting.values():
            p.difference_update(free)
    if not waiting:
        return []
    path = [min(waiting)]
    while True:
        above = min(waiting[path[-1]] & waiting.keys())
        if above in path:
            circle = path[path.index(above) :]
            return [circle[0], *circle[:0:-1]]
        path.append(above)


def children_of(parents: Parents) -> list[list[int]]:
    """The nodes that each node has an arrow to."""
    children: list[list[int]] = [[] for _ in parents]
    for i, above in enumerate(parents):
        for p in above:
            children[p].append(i)
    return children


def ancestors(parents: Parents, nodes: Iterable[int]) -> set[int]:
    """The nodes themselves and everything above them.

    >>> sorted(ancestors([[], [0], [1], []], [1]))
    [0, 1]
    """
    found: set[int] = set()
    waiting = list(nodes)
    while waiting:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting += parents[i]
    return found


def is_d_separated(
    parents: Parents, x: Iterable[int], y: Iterable[int], z: Iterable[int] = ()
) -> bool:
    r"""Whether Z blocks every path between X and Y, so that :math:`X \perp Y \mid Z`.

    A path is blocked at a node of Z that is no collider, and at a collider without a descendant in
    Z. The search walks along open paths, in time linear in the number of arrows.

    >>> collider = [[], [], [0, 1]]
    >>> is_d_separated(collider, [0], [1]), is_d_separated(collider, [0], [1], [2])
    (True, False)
    """
    x, y, z = set(x), set(y), set(z)
    if x & y or x & z or y & z:
        raise ValueError(f"x={sorted(x)}, y={sorted(y)} and z={sorted(z)} must not overlap")
    children = children_of(parents)
    opened = ancestors(parents, z)  # colliders that Z opens
    waiting, seen = [(i, "up") for i in x], set()  # "up": arrived from a child
    while waiting:
        at = node, came = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        if node in y:
            return False
        if came == "up" and node not in z:
            waiting += [(p, "up") for p in parents[node]] + [(c, "down") for c in children[node]]
        elif came == "down":
            if node not in z:
                waiting += [(c, "down") for c in children[node]]
            if node in opened:
                waiting += [(p, "up") for p in parents[node]]
    return True


def markov_blanket(parents: Parents, node: int) -> set[int]:
    """Parents, children and their other parents: given them the node is independent of the rest.

    >>> sorted(markov_blanket([[], [], [0, 1], [2]], 0))
    [1, 2]
    """
    below = children_of(parents)[node]
    found = {*parents[node], *below, *(p for c in below for p in parents[c])}
    return found - {node}


def moral_graph(parents: Parents) -> set[tuple[int, int]]:
    """Edges (i < j) without direction: every arrow, and parents of a common child.

    >>> sorted(moral_graph([[], [], [0, 1]]))
    [(0, 1), (0, 2), (1, 2)]
    """
    edges = {(min(i, p), max(i, p)) for i, above in enumerate(parents) for p in above}
    return edges | {
        (min(a, b), max(a, b)) for above in parents for a, b in combinations(sorted(above), 2)
    }
