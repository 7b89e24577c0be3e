"""Structures of sum-product networks: learned by splitting columns and rows, or random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.math.info.dependence import dependence_of, wave_directions, weighted_ranks
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.generative.coding import coarse

Node = list[Any]
F64 = NDArray[np.float64]
BINS = 4  # of a real column in a test of dependence


def random_circuit(d: int, k: int, repetitions: int, key: Key) -> list[Node]:
    """Sums over random binary trees: every part of the columns has k sums of products of its halves."""
    nodes: list[Node] = []
    rng = key.numpy()

    def part(columns: list[int], outputs: int) -> list[int]:
        if len(columns) == 1:
            nodes.extend(["leaf", columns[0]] for _ in range(outputs))
            return list(range(len(nodes) - outputs, len(nodes)))
        half = len(columns) // 2
        left, right = part(columns[:half], k), part(columns[half:], k)
        products = []
        for a in left:
            for b in right:
                nodes.append(["product", [a, b]])
                products.append(len(nodes) - 1)
        found = []
        for _ in range(outputs):
            nodes.append(["sum", list(products)])
            found.append(len(nodes) - 1)
        return found

    if d == 1:
        leaves = part([0], k)
        return [*nodes, ["sum", leaves]]
    roots = []
    for _ in range(repetitions):
        order = [int(i) for i in rng.permutation(d)]
        roots += part(order, 1)
    return [*nodes, ["sum", roots]]


def learned_circuit(
    x: Tensor,
    levels: Sequence[int],
    weight: Tensor | None,
    *,
    min_rows: int,
    threshold: float,
    n_groups: int,
    key: Key,
    dependence: str = "g2",
) -> list[Node]:
    """LearnSPN: products of groups of columns that are independent, else sums of groups of rows.

    Dependence is tested on the columns' levels, of real columns on quarters of their ranks ("g2"), or by
    random waves of ranks ("rdc"); groups of rows are those of k-means. EM sets all numbers afterwards.
    """
    rows = x.detach().double().cpu().numpy()
    w = np.ones(len(rows)) if weight is None else weight.double().cpu().numpy()
    keep = w > 0
    rows, w = rows[keep], w[keep]
    nodes: list[Node] = []

    def add(kind: str, what: Any) -> int:
        nodes.append([kind, what])
        return len(nodes) - 1

    def product_of(parts: list[int]) -> int:
        return parts[0] if len(parts) == 1 else add("product", parts)

    def split(at: NDArray[np.int64], columns: list[int], own: Key) -> int:
        if len(columns) == 1:
            return add("leaf", columns[0])
        if w[at].sum() < min_rows:
            return product_of([add("leaf", c) for c in columns])
        groups = independent_groups(
            rows[at], [levels[c] for c in columns], columns, w[at], threshold, dependence
        )
        if len(groups) > 1:
            return product_of([split(at, g, own.fold("part", k)) for k, g in enumerate(groups)])
        labels = row_groups(
            rows[at][:, columns], [levels[c] for c in columns], w[at], n_groups, own
        )
        kinds = np.unique(labels)
        if len(kinds) < 2:
            return product_of([add("leaf", c) for c in columns])
        return add(
            "sum",
            [split(at[labels == k], columns, own.fold("rows", int(k))) for k in kinds],
        )

    split(np.arange(len(rows)), list(range(len(levels))), key)
    return nodes


def independent_groups(
    rows: NDArray[np.float64],
    levels: Sequence[int],
    columns: list[int],
    weight: NDArray[np.float64],
    threshold: float,
    dependence: str,
) -> list[list[int]]:
    """Columns in groups without dependence across: components of the graph of dependent pairs."""
    test = _waves if dependence == "rdc" else _tables
    p_value = test([rows[:, c] for c in columns], levels, weight)
    d = len(columns)
    tied = np.zeros((d, d), bool)
    for i in range(d):
        for j in range(i + 1, d):
            tied[i, j] = p_value(i, j) <= threshold
    _, group = connected_components(tied, directed=False)
    return [[columns[i] for i in range(d) if group[i] == g] for g in range(group.max() + 1)]


def _tables(
    columns: Sequence[F64], levels: Sequence[int], weight: F64
) -> Callable[[int, int], float]:
    """The test G² of two columns by number."""
    codes = [_codes(v, k, weight) for v, k in zip(columns, levels, strict=True)]
    return lambda i, j: _p_value(codes[i], codes[j], weight)


def _waves(
    columns: Sequence[F64], levels: Sequence[int], weight: F64
) -> Callable[[int, int], float]:
    """The randomised dependence coefficient's test of two columns by number, on rows that know both."""
    tables = [
        np.eye(k)[np.nan_to_num(v).astype(np.int64)] if k else v[:, None]
        for v, k in zip(columns, levels, strict=True)
    ]
    known = [~np.isnan(v) for v in columns]
    whole = all(bool(k.all()) for k in known)
    keys = Key.of(0).fold("waves").split(len(columns))

    def directions(i: int, rows: NDArray[np.bool_]) -> F64:
        return wave_directions(tables[i][rows], weight[rows], keys[i])

    kept = [directions(i, k) for i, k in enumerate(known)] if whole else []

    def p_value(i: int, j: int) -> float:
        both = known[i] & known[j]
        if not both.any():
            return 1.0
        pair = (kept[i], kept[j]) if whole else (directions(i, both), directions(j, both))
        return dependence_of(*pair, float(weight[both].sum())).p_value

    return p_value


def _codes(v: NDArray[np.float64], levels: int, weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Level numbers, −1 for what is missing; of real values the quarter of their rank."""
    known = ~np.isnan(v)
    out = np.full(len(v), -1)
    if levels:
        out[known] = v[known].astype(np.int64)
    elif known.any():
        rank = weighted_ranks(v[known], weight[known])
        out[known] = np.minimum((BINS * rank).astype(np.int64), BINS - 1)
    return out


def _p_value(a: NDArray[np.int64], b: NDArray[np.int64], w: NDArray[np.float64]) -> float:
    both = (a >= 0) & (b >= 0)
    if not both.any():
        return 1.0
    a, b, w = a[both], b[both], w[both]
    kb = int(b.max()) + 1
    n = np.bincount(a * kb + b, w, minlength=(int(a.max()) + 1) * kb).reshape(-1, kb)
    n = n[n.sum(1) > 0][:, n.sum(0) > 0]
    freedom = (n.shape[0] - 1) * (n.shape[1] - 1)
    if not freedom:
        return 1.0
    expected = n.sum(1, keepdims=True) * n.sum(0) / n.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        g2 = 2 * np.where(n > 0, n * np.log(n / expected), 0.0).sum()
    return float(chi2.sf(g2, freedom))


def row_groups(
    rows: NDArray[np.float64], levels: Sequence[int], weight: NDArray[np.float64], k: int, key: Key
) -> NDArray[np.int64]:
    """Groups of rows by k-means: categories one-hot, missing values at the mean."""
    parts = []
    for j, size in enumerate(levels):
        v = rows[:, j]
        known = ~np.isnan(v)
        if size:
            hot = np.full((len(v), size), 1 / size)
            hot[known] = np.eye(size)[v[known].astype(np.int64)]
            parts.append(hot)
            continue
        mean = np.average(v[known], weights=weight[known]) if known.any() else 0.0
        off = np.where(known, v - mean, 0.0)
        spread = np.sqrt(np.average(off**2, weights=weight))
        centre, scale = coarse(np.array([mean]), np.array([spread if spread > 0 else 1.0]))
        parts.append(np.where(known, (v - centre) / scale, 0.0)[:, None])
    features = np.concatenate(parts, 1)
    if len(np.unique(features, axis=0)) < k:
        return np.zeros(len(rows), np.int64)
    model = KMeans(k, random_state=int(key.low % 2**32), n_init=1).fit(
        features, sample_weight=weight
    )
    return np.asarray(model.labels_, np.int64)
