r"""k-means over rows, compiled: nearest centroids by matrix products, skipped where bounds allow.

:math:`\tfrac12\|x-\mu_z\|^2 - \tfrac12\|x\|^2 = \tfrac12\|\mu_z\|^2 - \mu_z^\top x`, so a tile of rows
is compared with all centroids by one product. With an upper bound u of a row's distance to its own
centroid and a lower bound l to every other one (Hamerly), u < l proves the label and the row is
skipped. Both bounds are widened by the rounding error of the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


def _jit(function: Any) -> Any:
    return njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})(function)


@_jit
def _two_nearest(c: Any, half: Any, best: Any, second: Any, label: Any) -> None:
    """The two lowest of ``half[z] - c[z, i]`` over z, and where the lowest is (the first)."""
    k, n = c.shape
    for i in range(n):
        best[i] = half[0] - c[0, i]
        second[i] = np.inf
        label[i] = 0
    for z in range(1, k):
        h = half[z]
        for i in range(n):
            v, b = h - c[z, i], best[i]
            second[i] = min(second[i], max(v, b))
            label[i] = z if v < b else label[i]
            best[i] = min(v, b)


@_jit
def _compare(
    x: Any, index: Any, n: int, origin: Any, mu: Any, half: Any, slack: float, out: Any
) -> None:
    """Labels and squared distances, widened, to the two nearest centroids of n listed rows."""
    d = x.shape[1]
    rows, norm, c, best, second, label = out
    for i in range(n):
        s = x.dtype.type(0)
        for j in range(d):
            v = x[index[i], j] - origin[j]
            rows[i, j] = v
            s += v * v
        norm[i] = s
    if n == c.shape[1]:
        np.dot(mu, rows.T, c)
        _two_nearest(c, half, best, second, label)
    else:
        part = np.dot(mu, rows[:n].T)
        _two_nearest(part, half, best, second, label)
    top = half.max()
    for i in range(n):
        error = slack * (norm[i] + 2 * top)
        best[i] = max(norm[i] + 2 * best[i], x.dtype.type(0)) + error
        second[i] = max(norm[i] + 2 * second[i] - error, x.dtype.type(0))


@_jit
def _buffers(like: Any, tile: int, k: int) -> Any:
    d = like.shape[1]
    return (
        np.empty((tile, d), like.dtype),
        np.empty(tile, like.dtype),
        np.empty((k, tile), like.dtype),
        np.empty(tile, like.dtype),
        np.empty(tile, like.dtype),
        np.empty(tile, np.int32),
    )


@_jit
def step(
    x: Any,
    w: Any,
    origin: Any,
    mu: Any,
    half: Any,
    gap: Any,
    shift: Any,
    far: Any,
    label: Any,
    upper: Any,
    lower: Any,
    slack: float,
    tile: int,
    lo: int,
    hi: int,
) -> Any:
    """Label rows lo..hi; give the change of weights ``(k,)`` and sums ``(k, d)`` and how many moved.

    ``mu`` and ``half`` are about ``origin``; ``gap`` is half the distance of each centroid to the
    nearest other one, ``shift`` how far each moved, ``far`` how far any of the others moved.
    Labels of −1 are new. ``w`` of length zero stands for ones.
    """
    k, d = mu.shape
    n_delta, x_delta = np.zeros(k), np.zeros((k, d))
    out = _buffers(x, tile, k)
    rows, best, second, found = out[0], out[3], out[4], out[5]
    index = np.empty(tile, np.int64)
    moved, compared, waiting = 0, 0, 0
    for i in range(lo, hi + 1):
        if i < hi:
            z = label[i]
            skip = False
            if z >= 0:
                u, l = upper[i] + shift[z], lower[i] - far[z]
                m = max(l, gap[z])
                lower[i] = l
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
        _compare(x, index, waiting, origin, mu, half, slack, out)
        compared += waiting
        for a in range(waiting):
            row, new = index[a], found[a]
            old = label[row]
            upper[row], lower[row] = np.sqrt(best[a]), np.sqrt(second[a])
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


@_jit
def _geometry(mu: Any, moved: Any, slack: float, gap: Any, shift: Any, far: Any) -> None:
    """Half distances between centroids, own shifts, and the largest shift of the others."""
    k, d = mu.shape
    for a in range(k):
        least = np.inf
        for b in range(k):
            if a == b:
                continue
            s = 0.0
            for j in range(d):
                v = mu[a, j] - mu[b, j]
                s += v * v
            least = min(least, s)
        gap[a] = 0.5 * np.sqrt(least) * (1 - slack)
        shift[a] = moved[a] * (1 + slack)
    for a in range(k):
        most = 0.0
        for b in range(k):
            if a != b:
                most = max(most, shift[b])
        far[a] = most


@_jit
def lloyd(
    x: Any,
    w: Any,
    origin: Any,
    mu: Any,
    label: Any,
    upper: Any,
    lower: Any,
    n: Any,
    sums: Any,
    moved: Any,
    spread: float,
    total: float,
    threshold: float,
    slack: float,
    tile: int,
    values: Any,
) -> Any:
    """Iterations until no label changes, the centroids rest, ``values`` is full or one is empty.

    Everything is changed in place: centroids ``mu`` about ``origin``, labels and bounds of the rows,
    weights ``n`` and sums of the centroids, how far each ``moved``, and the objective of every
    iteration. Gives the number of iterations, how many rows changed in the last one, the sum of
    its squared shifts, how often a row was compared, and whether a centroid lost all its rows: then
    the last iteration has labelled but not moved.
    """
    k, d = mu.shape
    gap, shift, far = np.empty(k), np.empty(k), np.empty(k)
    near, half = np.empty((k, d), x.dtype), np.empty(k, x.dtype)
    compared, changed, square = 0, 0, 0.0
    for iteration in range(len(values)):
        _geometry(mu, moved, slack, gap, shift, far)
        for z in range(k):
            h = 0.0
            for j in range(d):
                near[z, j] = mu[z, j]
                h += np.float64(near[z, j]) ** 2
            half[z] = 0.5 * h
        n_part, x_part, changed, c = step(
            x, w, origin, near, half, gap, shift, far, label, upper, lower, slack, tile, 0, len(x)
        )
        compared += c
        n += n_part
        sums += x_part
        if n.min() <= 1e-12 * total:
            return iteration, changed, square, compared, True
        square, pulled = 0.0, 0.0
        for z in range(k):
            s = 0.0
            for j in range(d):
                mean = sums[z, j] / n[z]
                s += (mean - mu[z, j]) ** 2
                mu[z, j] = mean
                pulled += 2 * mean * sums[z, j] - n[z] * mean * mean
            moved[z] = np.sqrt(s)
            square += s
        values[iteration] = 0.5 * max(0.0, spread - pulled) / total
        if changed == 0 or square <= threshold:
            return iteration + 1, changed, square, compared, False
    return len(values), changed, square, compared, False


@_jit
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
        _compare(x, index, n, origin, mu, half, 0.0, out)
        for i in range(n):
            z = out[5][i]
            label[start + i] = z
            s = 0.0
            for j in range(d):
                v = np.float64(out[0][i, j]) - mu[z, j]
                s += v * v
            total += s * (w[start + i] if w.size else 1.0)
    return total


@_jit
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


@_jit
def potentials(x: Any, w: Any, closest: Any, rows: Any, lo: int, hi: int) -> Any:
    """What each candidate would leave of the sum of squared distances, ``(m,)``."""
    m, d = rows.shape
    out = np.zeros(m)
    for i in range(lo, hi):
        wi = w[i] if w.size else 1.0
        for c in range(m):
            s = 0.0
            for j in range(d):
                v = x[i, j] - rows[c, j]
                s += v * v
            out[c] += wi * min(s, closest[i])
    return out


@_jit
def approach(x: Any, closest: Any, row: Any, lo: int, hi: int) -> None:
    """Lower the squared distances of rows lo..hi to those from one more centroid."""
    for i in range(lo, hi):
        s = 0.0
        for j in range(x.shape[1]):
            v = x[i, j] - row[j]
            s += v * v
        closest[i] = min(closest[i], s)


@_jit
def plus_plus(
    x: Any, w: Any, rows: Any, lengths: Any, first: int, uniform: Any, chosen: Any
) -> int:
    """Fill ``chosen`` with row numbers far from each other; how many there are before all is zero.

    ``rows`` and ``lengths`` are the weight line: one row of each content, and how much of the line
    is its. ``uniform`` holds the draws of every round ``(k - 1, trials)``.
    """
    k, trials = len(chosen), uniform.shape[1]
    closest = np.full(len(x), np.inf)
    ends, drawn = np.empty(len(rows)), np.empty(trials, np.int64)
    chosen[0] = first
    approach(x, closest, x[first], 0, len(x))
    for i in range(1, k):
        total, last = 0.0, 0
        for g in range(len(rows)):
            length = closest[rows[g]] * lengths[g]
            total += length
            ends[g] = total
            if length != 0:
                last = g
        if not 0.0 < total < np.inf:
            return i
        for t in range(trials):
            found = np.searchsorted(ends, uniform[i - 1, t] * total, side="right")
            drawn[t] = rows[min(found, last)]
        left = potentials(x, w, closest, x[drawn], 0, len(x))
        chosen[i] = drawn[left.argmin()]
        approach(x, closest, x[chosen[i]], 0, len(x))
    return k


__all__ = ["approach", "lloyd", "moments", "nearest", "plus_plus", "potentials", "step"]
