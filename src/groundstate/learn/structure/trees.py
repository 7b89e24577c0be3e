r"""The best tree: maximum spanning tree of mutual informations (Chow and Liu)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def mutual_information(
    x: NDArray[np.int64], levels: Sequence[int], weight: F64 | None = None
) -> F64:
    r""":math:`I_{ij} = \sum_{ab}p_{ab}\log\frac{p_{ab}}{p_ap_b}` of all pairs of columns, in nats.

    Negative level numbers are missing: a pair counts the rows that have both.

    >>> x = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> mutual_information(x, [2, 2]).round(4).tolist()
    [[0.0, 0.6931], [0.6931, 0.0]]
    """
    d = len(levels)
    out = np.zeros((d, d))
    columns = np.ascontiguousarray(np.asarray(x, np.int64).T)
    w = np.ones(columns.shape[1]) if weight is None else np.asarray(weight, np.float64)
    some = (columns < 0).any()
    for i in range(d):
        for j in range(i + 1, d):
            code, mass = columns[i] * levels[j] + columns[j], w
            if some:
                both = (columns[i] >= 0) & (columns[j] >= 0)
                code, mass = code[both], w[both]
            n = np.bincount(code, mass, minlength=levels[i] * levels[j])
            p = n.reshape(levels[i], levels[j]) / max(n.sum(), 1e-300)
            outer = p.sum(1, keepdims=True) * p.sum(0)
            with np.errstate(divide="ignore", invalid="ignore"):
                out[i, j] = out[j, i] = max(np.where(p > 0, p * np.log(p / outer), 0.0).sum(), 0.0)
    return out


def chow_liu(information: F64, root: int = 0) -> list[list[int]]:
    """Parents of each node in the tree of highest total information, arrows away from the root.

    Among all trees it has the highest likelihood. Ties go to the lowest numbers.

    Parameters
    ----------
    information : ``(d, d)`` symmetric, such as ``mutual_information``
    root : the node without a parent

    Examples
    --------
    >>> chow_liu(np.array([[0.0, 0.5, 0.1], [0.5, 0.0, 0.4], [0.1, 0.4, 0.0]]))
    [[], [0], [1]]
    """
    d = len(information)
    if not 0 <= root < d:
        raise ValueError(f"root={root} is not among the {d} columns")
    parents: list[list[int]] = [[] for _ in range(d)]
    best, source = information[root].astype(np.float64).copy(), np.full(d, root)
    inside = np.zeros(d, bool)
    inside[root] = True
    for _ in range(d - 1):
        i = int(np.where(inside, -np.inf, best).argmax())
        parents[i] = [int(source[i])]
        inside[i] = True
        closer = information[i] > best
        best[closer], source[closer] = information[i][closer], i
    return parents
