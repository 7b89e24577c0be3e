"""Whatever people have, as rows that can be learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from groundstate.compute.rows import Rows, describe
from groundstate.data.graphs.read import GraphRows, NodeReader, PairReader
from groundstate.data.images.read import ImageRows
from groundstate.data.reading import RowReader, is_array, real
from groundstate.data.sequences.read import SequenceRows
from groundstate.data.streams.datasets import columns_of, is_dataset, stacked
from groundstate.data.text.conll import StepRows
from groundstate.data.text.read import TextReader
from groundstate.data.trajectories.read import TrajectoryRows
from groundstate.errors import DataError


class TableRows(RowReader):
    """Lines of numbers, ``(n, d)``."""

    kind = "table"
    accepts = "an array (n, d) of numbers"

    def takes(self, value: Any) -> bool:
        return is_array(value, 2)

    def read(self, value: Any) -> Rows:
        if hasattr(value, "to_numpy"):
            value = value.to_numpy()
        found = real(value)
        if found.ndim != 2:
            raise DataError(f"got shape {tuple(found.shape)}, expected {self.accepts}")
        return found


# asked in this order; paths of image files are texts too
READERS: dict[str, RowReader] = {
    reader.kind: reader
    for reader in (
        TableRows(), ImageRows(), TextReader(), NodeReader(), PairReader(), GraphRows(),
        TrajectoryRows(), SequenceRows(), StepRows(),
    )
}  # fmt: skip
KINDS = tuple(READERS)


@dataclass(frozen=True, repr=False)
class Taken:
    """Rows, what they were taken for, and targets where the data held some.

    Attributes
    ----------
    rows : tensor or container
    kind : table, image, text, graph, node, pair, trajectory, sequence or steps
    y, weight : arrays ``(n,)``, or None
    """

    rows: Rows
    kind: str
    y: Any = None
    weight: Any = None

    def __repr__(self) -> str:
        target = "" if self.y is None else ", with targets"
        return f"{self.kind}: {describe(self.rows)}{target}"


def rows_of(value: Any, kind: str | None = None) -> Taken:
    """Rows of whatever is given: arrays, lists, files, graphs, torch data sets.

    Parameters
    ----------
    value : what is there; see the table below
    kind : one of ``groundstate.data.KINDS`` where the form alone does not tell; ``(n, H, W)`` is
        taken for sequences unless it is called images

    Returns
    -------
    Taken
        Prints as what was understood.

    ==========  ================================================================================
    table       array ``(n, d)``
    image       array ``(n, C, H, W)``, paths of image files, a folder of them
    text        list, array or column of strings
    sequence    list of arrays of different length, array ``(n, T, d)``, pair ``(array, lengths)``,
                long table with the columns id, time, items
    graph       list of networkx graphs, sparse adjacency matrices, ``(node features, edges)``
    node        one such graph, whose nodes are the rows
    pair        ``(graph, pairs)``, pairs ``(n, 2)`` of node numbers
    trajectory  list of dicts with observations, actions, rewards
    steps       list of lists of words, a CoNLL file; or sequences, for an answer at every step
    ==========  ================================================================================

    A torch ``Dataset`` of one of these, or of ``(x, y)``, is read into memory.

    Examples
    --------
    >>> rows_of(["to be", "or not to be"])
    text: 2 texts of 5 to 12 bytes
    >>> rows_of([[0.5, 1.0], [2.0]])
    sequence: 2 sequences of 1 to 2 items of shape (1,), float64
    """
    if kind is not None and kind not in READERS:
        raise DataError(f"kind={kind!r} is not known; use one of {', '.join(KINDS)}")
    if isinstance(value, Iterator):
        raise DataError(
            f"a {type(value).__name__} can be read once; pass a list, or "
            "groundstate.data.Rereadable(function) with the function that makes it"
        )
    if is_dataset(value):
        return _of_dataset(value, kind)
    if kind is None:
        kind = next((name for name, reader in READERS.items() if reader.takes(value)), None)
    if kind is None:
        listed = "; ".join(f"{name}: {reader.accepts}" for name, reader in READERS.items())
        raise DataError(
            f"cannot tell what rows {_form(value)} holds; pass kind= and one of {listed}"
        )
    return Taken(READERS[kind].read(value), kind)


def _of_dataset(dataset: Any, kind: str | None) -> Taken:
    columns = {name: stacked(values) for name, values in columns_of(dataset).items()}
    if "x" not in columns:
        raise DataError(
            f"rows of {type(dataset).__name__} have the parts {', '.join(columns)}; name the inputs "
            "'x' and the targets 'y'"
        )
    x = rows_of(columns["x"], kind)
    y, weight = (None if (v := columns.get(n)) is None else np.asarray(v) for n in ("y", "weight"))
    return Taken(x.rows, x.kind, y, weight)


def _form(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"a {type(value).__name__} of shape {tuple(shape)}"
    if isinstance(value, list | tuple) and value:
        return f"a {type(value).__name__} of {type(value[0]).__name__}"
    return f"a {type(value).__name__}"
