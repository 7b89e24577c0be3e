"""Networks for the columns of a table: numbers made smooth, embedded, and read by many members."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.nn.tabular.members import MemberLinear as MemberLinear
    from groundstate.nn.tabular.members import SharedLinear as SharedLinear
    from groundstate.nn.tabular.net import TabularNet as TabularNet
    from groundstate.nn.tabular.numbers import PeriodicEmbedding as PeriodicEmbedding
    from groundstate.nn.tabular.numbers import RobustScale as RobustScale

lazy(__name__)
