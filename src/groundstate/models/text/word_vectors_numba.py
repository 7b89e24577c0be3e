"""Loops of word vectors: windows of texts, and pairs of words with counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import FAST, inner, outer

SUMS = FAST | {"reassoc"}  # sums of products in vector registers


@inner
def random(state: Any) -> Any:
    """The next 64 bits of xorshift64*."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@inner
def uniform(state: Any) -> float:
    return np.float64(random(state) >> np.uint64(11)) * 2.0**-53


@inner(fastmath=SUMS)
def push(h: Any, out: Any, word: int, label: float, rate: float, back: Any) -> None:
    """One step on −log σ(±h·o); what h moves by is added to ``back``."""
    dot = np.float32(0.0)
    for j in range(len(h)):
        dot += h[j] * out[word, j]
    g = np.float32(rate * (label - 1.0 / (1.0 + np.exp(-dot))))
    for j in range(len(h)):
        back[j] += g * out[word, j]
        out[word, j] += g * h[j]


@outer
def windows(
    tokens: Any, offsets: Any, keep: Any, cumulated: Any, inputs: Any, outputs: Any, window: int,
    negative: int, rate: float, epochs: int, cbow: bool, seed: int,
) -> None:  # fmt: skip
    """Epochs of skip-gram or CBOW with negative sampling, texts in their order."""
    dim = inputs.shape[1]
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed) | np.uint64(1)
    h, back = np.empty(dim, np.float32), np.empty(dim, np.float32)
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    kept = np.empty(longest, np.int64)
    total, done = epochs * len(tokens), 0
    guide = np.searchsorted(cumulated, np.arange(1 << 16) / (1 << 16))
    for _ in range(epochs):
        for i in range(len(offsets) - 1):
            n = 0
            for t in range(offsets[i], offsets[i + 1]):
                if keep[tokens[t]] >= 1.0 or uniform(state) < keep[tokens[t]]:
                    kept[n] = tokens[t]
                    n += 1
            now = rate * max(1e-4, 1.0 - done / total)
            for t in range(n):
                reach = 1 + np.int64(random(state) % np.uint64(window))
                low: Any = max(0, t - reach)
                high: Any = min(n, t + reach + 1)
                if cbow:
                    context(kept, t, low, high, cumulated, guide, inputs, outputs, negative, now,
                            state, h, back)  # fmt: skip
                else:
                    for s in range(low, high):
                        if s != t:
                            centre(kept[s], kept[t], cumulated, guide, inputs, outputs, negative,
                                   now, state, back)  # fmt: skip
            done += offsets[i + 1] - offsets[i]


@inner
def draw(cumulated: Any, guide: Any, state: Any) -> int:
    """A word ∝ its frequency to the power ¾."""
    u = uniform(state)
    k = guide[int(u * (1 << 16))]
    while cumulated[k] <= u:
        k += 1
    return k


@inner
def centre(
    word: int, target: int, cumulated: Any, guide: Any, inputs: Any, outputs: Any, negative: int,
    rate: float, state: Any, back: Any,
) -> None:  # fmt: skip
    """One pair of skip-gram: the vector of a word against its neighbour and drawn words."""
    back[:] = 0.0
    row = inputs[word]
    push(row, outputs, target, 1.0, rate, back)
    for _ in range(negative):
        other = draw(cumulated, guide, state)
        if other != target:
            push(row, outputs, other, 0.0, rate, back)
    for j in range(len(back)):
        row[j] += back[j]


@inner
def context(
    kept: Any, t: int, low: int, high: int, cumulated: Any, guide: Any, inputs: Any, outputs: Any,
    negative: int, rate: float, state: Any, h: Any, back: Any,
) -> None:  # fmt: skip
    """One window of CBOW: the mean vector of its words against the middle one and drawn words."""
    m = high - low - 1
    if m < 1:
        return
    h[:] = 0.0
    back[:] = 0.0
    for s in range(low, high):
        if s != t:
            for j in range(len(h)):
                h[j] += inputs[kept[s], j]
    for j in range(len(h)):
        h[j] /= m
    push(h, outputs, kept[t], 1.0, rate, back)
    for _ in range(negative):
        other = draw(cumulated, guide, state)
        if other != kept[t]:
            push(h, outputs, other, 0.0, rate, back)
    for s in range(low, high):
        if s != t:
            for j in range(len(h)):
                inputs[kept[s], j] += back[j]


@outer(fastmath=FAST)
def glove(
    rows: Any, columns: Any, log_counts: Any, weights: Any, w: Any, c: Any, b: Any, d: Any, gw: Any,
    gc: Any, gb: Any, gd: Any, rate: float, order: Any,
) -> float:  # fmt: skip
    """One pass of AdaGrad over pairs: f(x) (w·c + b + d − log x)²/2; the mean loss before it."""
    total, dim = 0.0, w.shape[1]
    for k in order:
        i, j = rows[k], columns[k]
        gap = b[i] + d[j] - log_counts[k]
        for m in range(dim):
            gap += w[i, m] * c[j, m]
        g = weights[k] * gap
        total += 0.5 * g * gap
        for m in range(dim):
            a, z = g * c[j, m], g * w[i, m]
            gw[i, m] += a * a
            gc[j, m] += z * z
            w[i, m] -= rate * a / np.sqrt(gw[i, m])
            c[j, m] -= rate * z / np.sqrt(gc[j, m])
        gb[i] += g * g
        gd[j] += g * g
        b[i] -= rate * g / np.sqrt(gb[i])
        d[j] -= rate * g / np.sqrt(gd[j])
    return total / len(order)
