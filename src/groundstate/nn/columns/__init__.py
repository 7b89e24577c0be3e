"""Networks for columns one after the other: each column's distribution from those before it."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.nn.columns.heads import ColumnHeads as ColumnHeads
    from groundstate.nn.columns.masked import MaskedColumns as MaskedColumns
    from groundstate.nn.columns.sequence import ColumnSequence as ColumnSequence

lazy(__name__)
