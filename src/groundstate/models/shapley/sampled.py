r"""Shapley values of any model: by drawing orders of the players, and by all subsets for few.

In a random order each player shows its cell of x where a background row b was; what that changes
is its value on average:

.. math:: \phi_j = E_{\pi, b}\,[f(x_{\pi \le j}, b_{\pi > j}) - f(x_{\pi < j}, b_{\pi \ge j})].

Each order is walked forwards and backwards with the same b (antithetic pairs), which takes the
variance of interactions of two away; the standard error is that of the mean over pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.models.shapley.game import Game

Floats = NDArray[np.float64]
Seen = Callable[[float], None]
ASKED = 200_000  # predictions of mixed rows, unasked
_FEWEST, _MOST = 4, 64  # pairs of orders
_CELLS = 4_000_000  # numbers held at once


def usual_pairs(n: int, players: int) -> int:
    """How many pairs of orders are drawn unasked, for n rows: fewer for many rows.

    >>> usual_pairs(1, 7), usual_pairs(344, 7), usual_pairs(5_000, 50)
    (64, 48, 4)
    """
    walk = max(1, 2 * (players - 1) * n)
    return int(np.clip(ASKED // walk, _FEWEST, _MOST))


def sampled_values(
    game: Game, pairs: int, key: Key, seen: Seen | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Values and standard errors (n, d, K), the base (K,), the predictions (n, K).

    Orders and background rows are the same for every row of X, so that a row's values do not
    depend on the rows beside it; every background row is used equally often, or ``pairs`` of them
    where there are more, which are then the whole background.

    Parameters
    ----------
    seen : is called with the share of the work that is done
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
    f_back, f_x = game.asked(back), game.asked(game.cells)
    k = f_x.shape[1]
    total, square = np.zeros((n, d, k)), np.zeros((n, d, k))
    who = np.arange(turns) % len(back)
    mine, row = [owned[p] for p in active], max(1, 2 * d * k)
    for rows, part in _parts(n, turns, max(1, _CELLS // row)):
        before, size = (
            rows.start * turns + part.start * _length(rows),
            _length(rows) * _length(part),
        )

        def share(done: float, before: int = before, size: int = size) -> None:
            if seen is not None:
                seen((before + size * done) / (n * turns))

        b = who[part]
        walked = _walked(game, rows, back[b], f_back[b], orders[part], mine, share)
        ends = np.broadcast_to(f_x[rows], (len(walked), 2, 1, _length(rows), k))
        gain = np.diff(np.concatenate([walked, ends], 2), axis=2)  # (t, 2, d, rows, k) by turn
        forward = np.take_along_axis(gain[:, 0], position[part][:, :, None, None], 1)
        backward = np.take_along_axis(gain[:, 1], (d - 1 - position[part])[:, :, None, None], 1)
        each = np.moveaxis((forward + backward) / 2, 1, 2)  # (t, rows, d, k)
        total[rows] += each.sum(0)
        square[rows] += (each**2).sum(0)
    mean = total / turns
    error = np.sqrt(np.maximum(square / turns - mean**2, 0) / max(turns - 1, 1))
    values, errors = np.zeros((2, n, len(game.names), k))
    values[:, active], errors[:, active] = mean, error
    return values, errors, f_back.mean(0), f_x


def _parts(n: int, turns: int, most: int) -> Iterator[tuple[slice, slice]]:
    """Some of n rows with some of the turns, at most so many pairs of them at once."""
    rows = min(n, most)
    at_once = max(1, most // max(rows, 1))
    for i in range(0, n, rows):
        for lo in range(0, turns, at_once):
            yield slice(i, min(i + rows, n)), slice(lo, min(lo + at_once, turns))


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _walked(
    game: Game,
    rows: slice,
    back: NDArray[Any],
    start: Floats,
    orders: NDArray[np.intp],
    mine: list[NDArray[np.intp]],
    share: Seen,
) -> Floats:
    """Predictions on the way from background rows to some rows of X, (t, 2, d, n, K), both ways.

    A step to a cell that is already there changes nothing and is not asked.

    Parameters
    ----------
    back, start : (t, p) background rows and (t, K) their predictions
    orders : (t, d) in which order the players come
    mine : cells of each player
    """
    (t, d), cells = orders.shape, game.cells[rows]
    n, p = cells.shape
    alike = (cells == back[:, None]) | ((cells != cells) & (back != back)[:, None])  # (t, n, p)
    same = np.stack([alike[:, :, own].all(2) for own in mine], 1)  # (t, d, n)
    ways = np.stack([orders, orders[:, ::-1]], 1)  # (t, 2, d)
    moved = ~np.take_along_axis(same[:, None], ways[:, :, :-1, None], 2)  # (t, 2, d − 1, n)
    owner = np.zeros(p, np.intp)
    for q, own in enumerate(mine):
        owner[own] = q
    turn = np.argsort(ways, 2)[:, :, owner]  # (t, 2, p)
    at = np.nonzero(moved)
    total = len(at[0])
    asked: list[Floats] = []
    done, some = 0, max(game.block, _CELLS // p)
    for lo in range(0, total, some):
        i, way, step, row = (a[lo : lo + some] for a in at)
        mixed = np.where(turn[i, way] <= step[:, None], cells[row], back[i])
        for block in game.blocks(mixed):
            asked.append(block)
            done += len(block)
            share(done / total)
    found = np.concatenate([start, *asked])  # (t + rows, K)
    number = np.empty((t, 2, d, n), np.intp)
    number[:, :, 0] = np.arange(t)[:, None, None]
    number[:, :, 1:] = np.where(moved, t - 1 + np.cumsum(moved).reshape(moved.shape), -1)
    return found[np.maximum.accumulate(number, axis=2)]


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
