r"""k-means over rows, compiled: nearest centroids by matrix products, skipped where bounds allow.

:math:`\tfrac12\|x-\mu_z\|^2 - \tfrac12\|x\|^2 = \tfrac12\|\mu_z\|^2 - \mu_z^\top x`, so a tile of rows
is compared with all centroids by one product. With an upper bound u of a row's distance to its own
centroid and lower bounds l to the others, u < min l proves the label and the row is skipped. The
others stand in groups with one bound each: a single group (Hamerly), some (Yinyang) or one for each
centroid (Elkan). All bounds are widened by the rounding error of the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

_FAST = {"contract", "reassoc", "nsz"}


@inner(fastmath=_FAST)
def _nearest(c: Any, half: Any, best: Any, label: Any) -> None:
    """The lowest of ``half[z] - c[z, i]`` over z, and where it is (the first)."""
    k, n = c.shape
    for i in range(n):
        best[i] = half[0] - c[0, i]
        label[i] = 0
    for z in range(1, k):
        h = half[z]
        for i in range(n):
            v, b = h - c[z, i], best[i]
            label[i] = z if v < b else label[i]
            best[i] = min(v, b)


@inner(fastmath=_FAST)
def _others(c: Any, half: Any, label: Any, group: Any, low: Any) -> None:
    """The lowest of ``half[z] - c[z, i]`` over the z of each group that are not the label."""
    k, n = c.shape
    for g in range(len(low)):
        for i in range(n):
            low[g, i] = np.inf
    for z in range(k):
        h, g = half[z], group[z]
        for i in range(n):
            v = h - c[z, i]
            low[g, i] = low[g, i] if label[i] == z else min(low[g, i], v)


@inner(fastmath=_FAST)
def _compare(x: Any, index: Any, n: int, origin: Any, mu: Any, half: Any, out: Any) -> Any:
    """Labels of n listed rows; the products with all centroids, of some rows of zeros too."""
    rows, norm, products, best, label = out
    m, k = (n + 15) // 16 * 16, len(mu)  # few shapes of products
    for i in range(n):
        s = x.dtype.type(0)
        for j in range(x.shape[1]):
            v = x[index[i], j] - origin[j]
            rows[i, j] = v
            s += v * v
        norm[i] = s
    for i in range(n, m):
        for j in range(x.shape[1]):
            rows[i, j] = 0
    c = products[: k * m].reshape(k, m)
    np.dot(mu, rows[:m].T, c)
    _nearest(c, half, best, label)
    return c


@inner
def _buffers(like: Any, tile: int, k: int) -> Any:
    d = like.shape[1]
    return (
        np.empty((tile, d), like.dtype),
        np.empty(tile, like.dtype),
        np.empty(k * tile, like.dtype),
        np.empty(tile, like.dtype),
        np.empty(tile, np.int32),
    )


@outer(fastmath=_FAST)
def step(
    x: Any, w: Any, origin: Any, mu: Any, half: Any, group: Any, gap: Any, shift: Any, far: Any,
    drift: Any, label: Any, upper: Any, lower: Any, slack: float, tile: int, lo: int, hi: int,
) -> Any:  # fmt: skip
    """Label rows lo..hi; give the change of weights ``(k,)`` and sums ``(k, d)`` and how many moved.

    ``mu`` and ``half`` are about ``origin``; ``gap`` is half the distance of each centroid to the
    nearest other one, ``shift`` how far each moved, ``far`` how far any of the others of its group
    moved, ``drift`` how far any of a group moved. ``lower`` is ``(N, groups)``; without groups no row
    is skipped. Labels of −1 are new. ``w`` of length zero stands for ones.
    """
    k, d = mu.shape
    groups = lower.shape[1]
    n_delta, x_delta = np.zeros(k), np.zeros((k, d))
    out = _buffers(x, tile, k)
    rows, norm, _, best, found = out
    low = np.empty((groups, tile), x.dtype)
    index = np.empty(tile, np.int64)
    top = half[0]
    for z in range(1, k):
        top = max(top, half[z])
    moved, compared, waiting = 0, 0, 0
    for i in range(lo, hi + 1):
        if i < hi:
            z = label[i]
            skip = False
            if z >= 0 and groups > 0:
                m = np.inf
                for g in range(groups):
                    l = lower[i, g] - (far[z] if group[z] == g else drift[g])
                    lower[i, g] = l
                    m = min(m, l)
                m = max(m, gap[z])
                u = upper[i] + shift[z]
                if u >= m:  # the bound is too loose: measure the distance itself
                    s = 0.0
                    for j in range(d):
                        v = (x[i, j] - origin[j]) - mu[z, j]
                        s += v * v
                    u = np.sqrt(s) * (1.0 + slack)
                upper[i] = u
                skip = u < m
            if not skip:
                index[waiting] = i
                waiting += 1
        if waiting < tile and (i < hi or waiting == 0):
            continue
        c = _compare(x, index, waiting, origin, mu, half, out)
        if groups > 0:
            _others(c, half, found, group, low)
        compared += waiting
        for a in range(waiting):
            row, new = index[a], found[a]
            old = label[row]
            error = slack * (norm[a] + 2 * top)
            upper[row] = np.sqrt(max(norm[a] + 2 * best[a], x.dtype.type(0)) + error)
            for g in range(groups):
                lower[row, g] = np.sqrt(max(norm[a] + 2 * low[g, a] - error, x.dtype.type(0)))
            if new != old:
                wi = w[row] if w.size else 1.0
                label[row] = new
                moved += 1
                n_delta[new] += wi
                for j in range(d):
                    x_delta[new, j] += wi * rows[a, j]
                if old >= 0:
                    n_delta[old] -= wi
                    for j in range(d):
                        x_delta[old, j] -= wi * rows[a, j]
        waiting = 0
    return n_delta, x_delta, moved, compared


@inner(fastmath=_FAST)
def _geometry(
    mu: Any, moved: Any, group: Any, slack: float, gap: Any, shift: Any, far: Any, drift: Any
) -> None:
    """Half distances between centroids, own shifts, the largest shift of the others of a group and
    of the group.
    """
    k, d = mu.shape
    for g in range(len(drift)):
        drift[g] = 0.0
    for a in range(k):
        least, most = np.inf, 0.0
        for b in range(k):
            if a == b:
                continue
            s = 0.0
            for j in range(d):
                v = mu[a, j] - mu[b, j]
                s += v * v
            least = min(least, s)
            if group[a] == group[b]:
                most = max(most, moved[b])
        gap[a] = 0.5 * np.sqrt(least) * (1 - slack)
        shift[a] = moved[a] * (1 + slack)
        far[a] = most * (1 + slack)
        if len(drift) > 0:
            drift[group[a]] = max(drift[group[a]], shift[a])


@outer(fastmath=_FAST)
def prepare(
    mu: Any, moved: Any, group: Any, slack: float, near: Any, half: Any, gap: Any, shift: Any,
    far: Any, drift: Any,
) -> None:  # fmt: skip
    """What a pass needs of the centroids: rounded ones, half their squares, and how they lie."""
    _geometry(mu, moved, group, slack, gap, shift, far, drift)
    for z in range(len(mu)):
        h = 0.0
        for j in range(mu.shape[1]):
            near[z, j] = mu[z, j]
            h += np.float64(near[z, j]) ** 2
        half[z] = 0.5 * h


@outer(fastmath=_FAST)
def lloyd(
    x: Any, w: Any, mu: Any, label: Any, n: Any, sums: Any, moved: Any, spread: float, total: float,
    threshold: float, furthest: float, values: Any, moves: Any,
) -> Any:  # fmt: skip
    """Iterations until no label changes, the centroids rest, ``values`` is full or one is empty.

    Every row is compared every time, which for few rows costs less than bounds, and compiles sooner.
    Everything is changed in place: centroids ``mu`` about the origin that ``x`` is about, labels, weights
    ``n`` and sums of the centroids, how far each ``moved``, and the objective and largest move of
    every iteration. Gives the number of iterations, how many rows changed in the last one, the sum of
    its squared shifts, and whether a centroid lost all its rows: then the last iteration has labelled
    but not moved.
    """
    k, d = mu.shape
    near, half, c = np.empty((k, d), x.dtype), np.empty(k, x.dtype), np.empty((k, len(x)), x.dtype)
    best, found = np.empty(len(x), x.dtype), np.empty(len(x), np.int32)
    changed, square = 0, 0.0
    for iteration in range(len(values)):
        for z in range(k):
            h = 0.0
            for j in range(d):
                near[z, j] = mu[z, j]
                h += np.float64(near[z, j]) ** 2
            half[z] = 0.5 * h
        np.dot(near, x.T, c)
        _nearest(c, half, best, found)
        changed = 0
        for i in range(len(x)):
            new, old = found[i], label[i]
            if new == old:
                continue
            wi = w[i] if w.size else 1.0
            label[i] = new
            changed += 1
            n[new] += wi
            for j in range(d):
                sums[new, j] += wi * x[i, j]
            if old >= 0:
                n[old] -= wi
                for j in range(d):
                    sums[old, j] -= wi * x[i, j]
        least = n[0]
        for z in range(1, k):
            least = min(least, n[z])
        if least <= 1e-12 * total:
            return iteration, changed, square, True
        square, pulled, most = 0.0, 0.0, 0.0
        for z in range(k):
            s = 0.0
            for j in range(d):
                mean = sums[z, j] / n[z]
                s += (mean - mu[z, j]) ** 2
                mu[z, j] = mean
                pulled += 2 * mean * sums[z, j] - n[z] * mean * mean
            moved[z] = np.sqrt(s)
            most = max(most, moved[z])
            square += s
        values[iteration] = 0.5 * max(0.0, spread - pulled) / total
        moves[iteration] = most
        if changed == 0 or square <= threshold or most < furthest:
            return iteration + 1, changed, square, False
    return len(values), changed, square, False


@outer(fastmath=_FAST)
def nearest(
    x: Any, w: Any, origin: Any, mu: Any, half: Any, label: Any, tile: int, lo: int, hi: int
) -> float:
    """Label rows lo..hi; give the weighted sum of their squared distances."""
    k, d = mu.shape
    out = _buffers(x, tile, k)
    index = np.empty(tile, np.int64)
    total = 0.0
    for start in range(lo, hi, tile):
        n = min(tile, hi - start)
        for i in range(n):
            index[i] = start + i
        _compare(x, index, n, origin, mu, half, out)
        for i in range(n):
            z = out[4][i]
            label[start + i] = z
            s = 0.0
            for j in range(d):
                v = np.float64(out[0][i, j]) - mu[z, j]
                s += v * v
            total += s * (w[start + i] if w.size else 1.0)
    return total


@outer(fastmath=_FAST)
def moments(x: Any, w: Any, origin: Any, lo: int, hi: int) -> Any:
    """Weight, weighted sum and weighted sum of squares ``(d,)`` of rows lo..hi about ``origin``."""
    d = x.shape[1]
    total, first, square = 0.0, np.zeros(d), np.zeros(d)
    for i in range(lo, hi):
        wi = w[i] if w.size else 1.0
        total += wi
        for j in range(d):
            v = np.float64(x[i, j]) - origin[j]
            first[j] += wi * v
            square[j] += wi * v * v
    return total, first, square
