"""One seed, or two: of the initial weights, and of the order of the rows."""

from __future__ import annotations

from typing import Any

from groundstate.compute.random import Key


def init_key(seed: Any) -> Key:
    """The key of the initial weights; of a pair of seeds the first one's.

    >>> init_key((3, 5)) == init_key(3)
    True
    """
    return Key.of(seed[0] if isinstance(seed, tuple | list) else seed)


def order_key(seed: Any) -> Key:
    """The key of the order of the rows and of dropout; of a pair of seeds the second one's."""
    return Key.of(seed[1] if isinstance(seed, tuple | list) else seed)
