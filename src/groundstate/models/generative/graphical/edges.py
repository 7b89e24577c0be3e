"""Arrows between columns: as given by name, or learned from rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.learn.structure import (
    BDeu,
    DiscreteBIC,
    GaussianBIC,
    chow_liu,
    hill_climb,
    mutual_information,
    pc,
)
from groundstate.learn.structure.pc import g_test
from groundstate.math.graphs.dags import find_cycle

SEARCHES = ("chow_liu", "hill_climbing", "pc")


def parents_of(
    edges: Iterable[Any], number: Callable[[Any], int], names: Sequence[Any]
) -> list[list[int]]:
    """Parents of each column from arrows (from, to); cycles, loops and doubles are refused."""
    parents: list[list[int]] = [[] for _ in names]
    for edge in edges:
        try:
            a, b = edge
        except (TypeError, ValueError):
            raise ValueError(f"an edge is a pair (from, to) of columns, got {edge!r}") from None
        i, j = number(a), number(b)
        if i == j or i in parents[j]:
            what = "goes from a column to itself" if i == j else "is there twice"
            raise ValueError(f"the edge {a!r} → {b!r} {what}")
        parents[j].append(i)
    circle = find_cycle(parents)
    if circle:
        path = " → ".join(str(names[i]) for i in (*circle, circle[0]))
        raise ValueError(f"the edges go in a circle, {path}; remove one of them")
    return parents


def learned_parents(
    how: str,
    x: NDArray[np.int64],
    levels: Sequence[int],
    weight: NDArray[np.float64] | None,
    *,
    criterion: str = "bic",
    equivalent_sample_size: float = 10.0,
    max_parents: int | None = None,
    alpha: float = 0.05,
) -> list[list[int]]:
    """Parents of each column from level numbers; negative numbers are missing.

    Trees count each pair where both are known, the searches use rows without a missing value.
    """
    if how == "chow_liu":
        return chow_liu(mutual_information(x, levels, weight))
    whole = (x >= 0).all(1)
    if not whole.any():
        raise ValueError(
            f"edges={how!r} learns from rows without missing values, and there is none; use "
            "edges='chow_liu', or name the edges"
        )
    x, weight = x[whole], None if weight is None else weight[whole]
    if how == "hill_climbing":
        found: Any = DiscreteBIC(x, levels, weight)
        if criterion == "bdeu":
            found = BDeu(x, levels, weight, equivalent_sample_size=equivalent_sample_size or 10.0)
        return hill_climb(found, max_parents=max_parents)
    return pc(len(levels), g_test(x, levels, weight), alpha=alpha).dag()


def gaussian_parents(
    how: str, cov: NDArray[np.float64], total: float, max_parents: int | None = None
) -> list[list[int]]:
    """The same for real columns with a covariance."""
    if how == "hill_climbing":
        return hill_climb(GaussianBIC(cov, total), max_parents=max_parents)
    spread = np.sqrt(np.maximum(np.diag(cov), 1e-300))
    r = np.clip(cov / np.outer(spread, spread), -1 + 1e-12, 1 - 1e-12)
    information = -0.5 * np.log1p(-(r**2))
    np.fill_diagonal(information, 0.0)
    return chow_liu(information)
