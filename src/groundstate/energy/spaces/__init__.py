r"""Where a variable lives: spaces of arrays, and of rows that differ in size."""

from groundstate.energy.spaces.arrays import (
    Binary,
    Count,
    Finite,
    Real,
    Sequence,
    Simplex,
    label_grid,
    space_of_rows,
)
from groundstate.energy.spaces.base import Space
from groundstate.energy.spaces.containers import (
    ContainerSpace,
    GraphSpace,
    RaggedOf,
    TextSpace,
    TokenSequence,
    Trajectory,
)

__all__ = [
    "Binary",
    "ContainerSpace",
    "Count",
    "Finite",
    "GraphSpace",
    "RaggedOf",
    "Real",
    "Sequence",
    "Simplex",
    "Space",
    "TextSpace",
    "TokenSequence",
    "Trajectory",
    "label_grid",
    "space_of_rows",
]
