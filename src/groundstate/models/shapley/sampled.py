r"""Shapley values of any model: by drawing orders of the players, and by all subsets for few.

In a random order each player shows its cell of x where a background row b was; what that changes
is its value on average:

.. math:: \phi_j = E_{\pi, b}\,[f(x_{\pi \le j}, b_{\pi > j}) - f(x_{\pi < j}, b_{\pi \ge j})].

Each order is walked forwards and backwards with the same b (antithetic pairs), which takes the
variance of interactions of two away; the standard error is that of the mean over pairs.
"""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.models.shapley.game import Game

Floats = NDArray[np.float64]
_ROWS = 200_000  # mixed cells held at once


def sampled_values(game: Game, pairs: int, key: Key) -> tuple[Floats, Floats, Floats, Floats]:
    """Values and standard errors (n, d, K), the base (K,), the predictions (n, K).

    Orders and background rows are the same for every row of X, so that a row's values do not
    depend on the rows beside it; every background row is used equally often, or ``pairs`` of them
    where there are more, which are then the whole background.
    """
    owned = game.owned()
    active = [p for p, cells in enumerate(owned) if len(cells)]
    d, n = len(active), len(game.cells)
    draw = key.fold("orders").numpy()
    back = game.background
    if len(back) > pairs:
        back = back[np.sort(draw.permutation(len(back))[:pairs])]
    turns = -(-pairs // len(back)) * len(back)
    orders = np.stack([draw.permutation(d) for _ in range(turns)])  # (T, d)
    position = np.argsort(orders, axis=1)  # when a player's turn comes
    owner = np.full(game.cells.shape[1], -1)
    for q, p in enumerate(active):
        owner[owned[p]] = q
    steps = np.arange(1, d)
    early = position[:, None, :] < steps[:, None]  # (T, d − 1, d) forwards
    late = position[:, None, :] >= (d - steps)[:, None]  # backwards
    shown = np.concatenate([early, late], 1)[:, :, np.maximum(owner, 0)]  # (T, 2(d − 1), p)
    shown &= owner >= 0
    f_back, f_x = game.asked(back), game.asked(game.cells)
    k = f_x.shape[1]
    total, square = np.zeros((n, d, k)), np.zeros((n, d, k))
    who = np.arange(turns) % len(back)
    at_once = max(1, _ROWS // max(1, 2 * max(d - 1, 1) * n))
    for lo in range(0, turns, at_once):
        part = slice(lo, min(lo + at_once, turns))
        size = part.stop - part.start
        b = back[who[part]]
        mixed = np.where(shown[part][:, :, None], game.cells, b[:, None, None])  # (t, s, n, p)
        f = game.asked(mixed.reshape(-1, mixed.shape[-1])) if d > 1 else np.empty((0, k))
        f = f.reshape(size, 2, d - 1, n, k)
        ends = np.broadcast_to(f_back[who[part]][:, None, None, None], (size, 2, 1, n, k))
        tops = np.broadcast_to(f_x, (size, 2, 1, n, k))
        gain = np.diff(np.concatenate([ends, f, tops], 2), axis=2)  # (t, 2, d, n, k) by turn
        forward = np.take_along_axis(gain[:, 0], position[part][:, :, None, None], 1)
        backward = np.take_along_axis(gain[:, 1], (d - 1 - position[part])[:, :, None, None], 1)
        each = np.moveaxis((forward + backward) / 2, 1, 2)  # (t, n, d, k)
        total += each.sum(0)
        square += (each**2).sum(0)
    mean = total / turns
    error = np.sqrt(np.maximum(square / turns - mean**2, 0) / max(turns - 1, 1))
    values, errors = np.zeros((2, n, len(game.names), k))
    values[:, active], errors[:, active] = mean, error
    return values, errors, f_back.mean(0), f_x


def enumerated_values(game: Game, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Exact values by all subsets of players: the definition, for few players."""
    owned = game.owned()
    active = [p for p, cells in enumerate(owned) if len(cells)]
    d, share = len(active), weight / weight.sum()
    gains: dict[frozenset[int], Floats] = {}
    for size in range(d + 1):
        for some in combinations(range(d), size):
            mixed = np.repeat(game.background[None], len(game.cells), 0)  # (n, m, p)
            for q in some:
                cells = owned[active[q]]
                mixed[:, :, cells] = game.cells[:, None, cells]
            f = game.asked(mixed.reshape(-1, mixed.shape[-1])).reshape(*mixed.shape[:2], -1)
            gains[frozenset(some)] = np.einsum("m,nmk->nk", share, f)
    predicted = game.asked(game.cells)
    values = np.zeros((len(game.cells), len(game.names), predicted.shape[1]))
    for q, p in enumerate(active):
        for without, v in gains.items():
            if q not in without:
                s = len(without)
                part = factorial(s) * factorial(d - s - 1) / factorial(d)
                values[:, p] += part * (gains[without | {q}] - v)
    return values, gains[frozenset()][0], predicted
