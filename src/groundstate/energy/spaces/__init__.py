r"""Where a variable lives: spaces of arrays, and of rows that differ in size."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.energy.spaces.arrays import Binary as Binary
    from groundstate.energy.spaces.arrays import Count as Count
    from groundstate.energy.spaces.arrays import Finite as Finite
    from groundstate.energy.spaces.arrays import Real as Real
    from groundstate.energy.spaces.arrays import Sequence as Sequence
    from groundstate.energy.spaces.arrays import Simplex as Simplex
    from groundstate.energy.spaces.arrays import label_grid as label_grid
    from groundstate.energy.spaces.arrays import space_of_rows as space_of_rows
    from groundstate.energy.spaces.base import Space as Space
    from groundstate.energy.spaces.containers import ContainerSpace as ContainerSpace
    from groundstate.energy.spaces.containers import GraphSpace as GraphSpace
    from groundstate.energy.spaces.containers import NodeSpace as NodeSpace
    from groundstate.energy.spaces.containers import ObjectSpace as ObjectSpace
    from groundstate.energy.spaces.containers import RaggedOf as RaggedOf
    from groundstate.energy.spaces.containers import TextSpace as TextSpace
    from groundstate.energy.spaces.containers import TokenSequence as TokenSequence
    from groundstate.energy.spaces.containers import Trajectory as Trajectory
    from groundstate.energy.spaces.levels import Levels as Levels

lazy(__name__)
