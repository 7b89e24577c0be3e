"""One seed, or two: of the initial weights, and of the order of the rows."""

from __future__ import annotations

from typing import Any

import torch

from groundstate.compute.random import Key
from groundstate.compute.reduce import current


def common_seed(seed: Any) -> Any:
    """The seed, the same for all processes of a run: without one the first process draws it.

    >>> common_seed(3)
    3
    """
    reduce = current()
    if seed is not None or reduce.world == 1:
        return seed
    return int(reduce.broadcast(torch.tensor([Key.of(None).low >> 2]))[0])


def init_key(seed: Any) -> Key:
    """The key of the initial weights; of a pair of seeds the first one's.

    >>> init_key((3, 5)) == init_key(3)
    True
    """
    return Key.of(seed[0] if isinstance(seed, tuple | list) else seed)


def order_key(seed: Any) -> Key:
    """The key of the order of the rows and of dropout; of a pair of seeds the second one's."""
    return Key.of(seed[1] if isinstance(seed, tuple | list) else seed)
