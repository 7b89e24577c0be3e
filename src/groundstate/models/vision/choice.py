"""Which network ``ImageClassifier`` takes where nobody names one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groundstate.errors import ShapeError
from groundstate.models.rows.budget import Budget


@dataclass(frozen=True)
class Choice:
    """A network by name, and how it learns.

    Attributes
    ----------
    network, params : of ``groundstate.nn.architectures``
    lr : learning rate
    budget : passes where ``max_epochs`` is None
    """

    network: str
    lr: float
    budget: Budget
    params: Mapping[str, Any] = field(default_factory=dict)


MANY = 20_000  # pictures from which a large network is worth its time

# channels of the blocks of a small network by the shorter side of the pictures from which they hold:
# every block halves the side, and about 4 x 4 places are left for the head
BLOCKS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (96, (16, 32, 64, 64, 64)),
    (48, (16, 32, 64, 64)),
    (16, (16, 32, 64)),
    (8, (32, 64)),
    (2, (64,)),
)
FLAT = 48  # sides up to this end in a dense layer on all places; above it the largest of each map

NAMED = Choice("resnet18", 1e-3, Budget(300, least=6, most=150))


def chosen(size: tuple[int, int], rows: float) -> Choice:
    """The network for pictures of a size, of so many rows.

    Examples
    --------
    >>> chosen((28, 28), 60).params
    {'channels': (16, 32, 64), 'head': 'flatten'}
    >>> chosen((32, 32), 50_000).network
    'resnet18'
    """
    if min(size) < 2:
        raise ShapeError(
            f"pictures of {size[0]} x {size[1]} pixels have no neighbours to look at; give the numbers as "
            "columns to a classifier of tables"
        )
    if rows >= MANY:
        return NAMED
    side = min(size)
    channels = next(maps for least, maps in BLOCKS if side >= least)
    head = "flatten" if max(size) <= FLAT else "gmp"
    budget = Budget(800, least=8, most=300)
    return Choice("cnn", 3e-3, budget, {"channels": channels, "head": head})
