r"""Pairs of rows that belong together and pairs that do not, drawn from labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.errors import DataError

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Differences of the rows of pairs.

    Attributes
    ----------
    similar : (p, d), of pairs that belong together
    different : (q, d), of those that do not
    """

    similar: F64
    different: F64

    @classmethod
    def of(cls, first: F64, second: F64, similar: NDArray[np.bool_]) -> Pairs:
        """Pairs that are given; two equal rows say nothing and are left out."""
        gap = first - second
        says = np.abs(gap).max(1, initial=0.0) > 0
        return cls(gap[similar & says], gap[~similar & says]).checked()

    def checked(self) -> Pairs:
        if not len(self.similar) or not len(self.different):
            kind = "belong together" if not len(self.similar) else "do not belong together"
            raise DataError(
                f"there is no pair of different rows that {kind}; give at least one pair of each kind "
                "(of labelled rows: two classes, and at least one class with two different rows)"
            )
        return self


def draw_pairs(x: F64, y: NDArray[np.int64], w: F64, n: int, key: Key) -> Pairs:
    """n pairs of different rows with one label and n with two, a row as often as its weight.

    Parameters
    ----------
    x, y, w : different rows in an order of their content, class numbers, weights

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1])
    >>> pairs = draw_pairs(x, y, np.ones(3), 20, Key.of(0))
    >>> np.unique(np.abs(pairs.similar)).tolist(), np.unique(np.abs(pairs.different)).tolist()
    ([1.0], [4.0, 5.0])
    """
    order = np.argsort(y, kind="stable")
    x, y, w = x[order], y[order], w[order]
    ends = np.cumsum(w)
    starts = ends - w
    first = np.searchsorted(y, y, "left")
    last = np.searchsorted(y, y, "right") - 1
    low, mass = starts[first], ends[last] - starts[first]  # of one's own class
    rng = key.numpy()

    def some(chance: F64) -> NDArray[np.int64]:
        total = chance.sum()
        return rng.choice(len(x), n, p=chance / total) if total > 0 else np.empty(0, np.int64)

    a = some(np.where(last > first, w, 0.0))
    point = low[a] + rng.random(len(a)) * (mass[a] - w[a])
    point += np.where(point >= starts[a], w[a], 0.0)  # not oneself
    b = np.clip(np.searchsorted(ends, point, "right"), first[a], last[a])
    c = some(np.where(ends[-1] > mass, w, 0.0) if y[0] != y[-1] else 0 * w)
    point = rng.random(len(c)) * (ends[-1] - mass[c])
    point += np.where(point >= low[c], mass[c], 0.0)  # not one's own class
    d = np.clip(np.searchsorted(ends, point, "right"), 0, len(x) - 1)
    gap, far = x[a] - x[b], x[c] - x[d]
    return Pairs(
        gap[np.abs(gap).max(1, initial=0.0) > 0],
        far[(y[c] != y[d]) & (np.abs(far).max(1, initial=0.0) > 0)],
    ).checked()
