"""Rows of any kind: a tensor's first axis, or a container whose rows differ in size."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.compute.rows.base import RowContainer as RowContainer
    from groundstate.compute.rows.base import Rows as Rows
    from groundstate.compute.rows.base import bad_row as bad_row
    from groundstate.compute.rows.base import check_same_length as check_same_length
    from groundstate.compute.rows.base import common_count as common_count
    from groundstate.compute.rows.base import count as count
    from groundstate.compute.rows.base import describe as describe
    from groundstate.compute.rows.base import elements as elements
    from groundstate.compute.rows.base import floating as floating
    from groundstate.compute.rows.base import floating_dtype as floating_dtype
    from groundstate.compute.rows.base import hash_together as hash_together
    from groundstate.compute.rows.base import hashes as hashes
    from groundstate.compute.rows.base import home as home
    from groundstate.compute.rows.base import in_memory as in_memory
    from groundstate.compute.rows.base import join as join
    from groundstate.compute.rows.base import on_disk as on_disk
    from groundstate.compute.rows.base import part as part
    from groundstate.compute.rows.base import real_dtype as real_dtype
    from groundstate.compute.rows.base import row_index as row_index
    from groundstate.compute.rows.base import split as split
    from groundstate.compute.rows.base import take as take
    from groundstate.compute.rows.base import tensors as tensors
    from groundstate.compute.rows.base import to_device as to_device
    from groundstate.compute.rows.files import ArrayReader as ArrayReader
    from groundstate.compute.rows.files import Files as Files
    from groundstate.compute.rows.files import Reader as Reader
    from groundstate.compute.rows.graph_nodes import GraphNodes as GraphNodes
    from groundstate.compute.rows.graphs import Graphs as Graphs
    from groundstate.compute.rows.objects import Objects as Objects
    from groundstate.compute.rows.pixels import Pixels as Pixels
    from groundstate.compute.rows.pixels import recoloured as recoloured
    from groundstate.compute.rows.pixels import resized as resized
    from groundstate.compute.rows.ragged import Ragged as Ragged
    from groundstate.compute.rows.record import Columns as Columns
    from groundstate.compute.rows.record import Record as Record
    from groundstate.compute.rows.segments import mean_items as mean_items
    from groundstate.compute.rows.segments import sum_items as sum_items
    from groundstate.compute.rows.spans import Spans as Spans
    from groundstate.compute.rows.texts import Gaps as Gaps
    from groundstate.compute.rows.texts import Texts as Texts
    from groundstate.compute.rows.texts import Tokens as Tokens
    from groundstate.compute.rows.texts import Words as Words
    from groundstate.compute.rows.trajectories import Trajectories as Trajectories

lazy(__name__)
