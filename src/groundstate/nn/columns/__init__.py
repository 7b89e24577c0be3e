"""Networks for columns one after the other: each column's distribution from those before it."""

from groundstate.nn.columns.heads import ColumnHeads as ColumnHeads
from groundstate.nn.columns.masked import MaskedColumns as MaskedColumns
from groundstate.nn.columns.sequence import ColumnSequence as ColumnSequence
