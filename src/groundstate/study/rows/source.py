"""What a path holds, as rows of some kind with targets."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.rows import (
    Files,
    GraphNodes,
    Rows,
    Texts,
    count,
    describe,
    hashes,
    join,
    take,
)
from groundstate.data.builtin.load import is_builtin
from groundstate.data.detection.read import is_detection_folder, read_detection_parts
from groundstate.data.detection.truths import Truth
from groundstate.data.graphs.graph import Graph
from groundstate.data.images.cache import cached
from groundstate.data.images.decode import ImageReader, headers, image_files
from groundstate.data.images.folder import common_size
from groundstate.data.images.formats import read_images
from groundstate.data.images.masks import (
    IGNORED,
    is_mask_folder,
    mask_parts,
    masked_pictures,
    paired,
    read_masks,
)
from groundstate.data.reader import read
from groundstate.data.rows import rows_of
from groundstate.errors import DataError
from groundstate.models.graphs.targets import labelled


@dataclass(frozen=True, eq=False)
class RowSource:
    """Rows, their targets and what to call them.

    Attributes
    ----------
    rows : tensor or container; those with a target
    y : array ``(n,)`` of labels or numbers, ``(n, H, W)`` of masks, or of `Truth` objects
    kind : of the rows
    name, target : for the page
    notes : what was understood of the files
    judges : numbers of the rows that a part of the data itself sets aside to judge, or None
    command : how the command line names the source
    task : "segmentation" or "detection"; None where y has a label or number of each row
    settings : of models, where the data ask for some
    """

    rows: Rows
    y: NDArray[Any]
    kind: str
    name: str
    target: str
    notes: list[str] = field(default_factory=list)
    judges: NDArray[np.intp] | None = None
    command: tuple[str, ...] = ()
    task: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """SHA-256 of all rows and targets in their canonical form."""
        words = np.sort(hashes(self.rows)).tobytes()
        values = self.y if self.task is None else self.target_ids(np.arange(len(self.y)))
        return hashlib.sha256(words + "\0".join(map(str, values)).encode()).hexdigest()

    def target_ids(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """The targets of some rows, each as one label, number or hash."""
        if self.task is None:
            return np.asarray(self.y[index])
        return np.array([_digest(self.y[i]) for i in index], np.uint64)


def is_row_source(source: Any, edges: Any = None) -> bool:
    """Whether a path leads to rows that are no table: a folder, or nodes with a file of edges."""
    folder = isinstance(source, str | Path) and Path(source).is_dir()
    return edges is not None or (folder and not is_builtin(source))


def read_source(source: str | Path, target: str | None = None, edges: Any = None) -> RowSource:
    """The rows of a folder of pictures (in class folders, with masks or with boxes) or graphs, or of two
    tables of nodes and edges."""
    if edges is not None:
        return _nodes(Path(source), Path(edges), target)
    found = _folder(Path(source))
    if target not in (None, found.target):
        raise DataError(
            f"{str(source)!r} is a folder, which says itself what is predicted, the {found.target}; leave "
            f"--target {target} out"
        )
    return found


def _folder(root: Path) -> RowSource:
    if list(root.glob("*_A.txt")):
        return _graphs(root)
    if is_mask_folder(root):
        return _masks(root)
    if is_detection_folder(root):
        return _boxes(root)
    return _pictures(root)


def texts_of(table: Any, target: Any) -> RowSource | None:
    """The rows of a table whose only other column than the target holds texts; None for others."""
    if target in (None, "none") or not isinstance(table, str | Path) or not Path(table).is_file():
        return None
    found = read(table).with_target(target)
    columns = [c for c in found.features.schema if c.kind not in ("id", "constant")]
    if [c.kind for c in columns] != ["text"] or found.task != "classification":
        return None
    values = found.features.frame[columns[0].name].fill_null("").to_list()
    note = f"texts of the column {columns[0].name!r}, {describe(Texts.of(values))}"
    return RowSource(Texts.of(values), np.asarray(found.y), "text", found.name, str(found.target),
                     [note], command=(str(Path(table).resolve()),))  # fmt: skip


def of_rows(X: Any, y: Any, kind: str | None = None, name: str = "rows") -> RowSource:
    """Rows and targets that are in memory."""
    taken = rows_of(X, kind)
    labels = np.asarray(taken.y if y is None else y)
    if len(labels) != count(taken.rows):
        raise DataError(f"{count(taken.rows)} rows need as many targets, got {len(labels)}")
    return RowSource(taken.rows, labels, taken.kind, name, "y")


def _nodes(nodes: Path, edges: Path, target: str | None) -> RowSource:
    if target is None:
        raise DataError("say with --target which column of the nodes is to be predicted")
    graph = Graph.from_csv(nodes, edges, target=target)
    known = labelled(graph.y)
    if known.sum() < 10:
        raise DataError(
            f"{int(known.sum())} nodes of {str(nodes)!r} have a {target!r}; 10 or more are needed to "
            "learn from some and judge by others"
        )
    rows = GraphNodes.all(Graph.batch([graph]))
    index = np.flatnonzero(known)
    y = np.array([graph.y[i] for i in index])
    note = (
        f"{graph.num_nodes:,} nodes, {len(index):,} of them with a label, {graph.num_edges:,} edges"
    )
    return RowSource(rows[index], y, "node", nodes.name, target, [note],
                     command=(str(nodes.resolve()), "--edges", str(edges.resolve())))  # fmt: skip


def _graphs(root: Path) -> RowSource:
    found = Graph.from_tu(root)
    if any(g.y is None for g in found):
        raise DataError(
            f"{str(root)!r} has no NAME_graph_labels.txt, so there is nothing to predict"
        )
    rows = Graph.batch(found)
    return RowSource(rows, np.array([g.y for g in found]), "graph", root.name, "graph label",
                     [describe(rows)], command=(str(root.resolve()),))  # fmt: skip


def _pictures(root: Path) -> RowSource:
    try:
        found = read_images(root)
    except DataError as error:
        if image_files(root):  # there are pictures, and the error is about one of them
            raise
        raise DataError(f"{str(root)!r} is a folder, but not one of rows: {error}") from None
    parts = [found[p] for p in ("train", "val", "test") if p in found]
    rows = join([part.rows for part in parts])
    y = np.concatenate([part.y for part in parts])
    judges = None
    if "test" in found:
        judges = np.arange(len(y) - len(found["test"]), len(y))
    return RowSource(rows, y, "image", root.name, "class", [describe(rows)], judges,
                     (str(root.resolve()),))  # fmt: skip


def _masks(root: Path) -> RowSource:
    parts = mask_parts(root)
    pictures = {part: image_files(images, empty=False) for part, (images, _) in parts.items()}
    masks = [
        str(mask)
        for part, (_, folder) in parts.items()
        for mask in paired(pictures[part], image_files(folder, empty=False))
    ]
    rows, y = masked_pictures([p for own in pictures.values() for p in own], read_masks(masks))
    judges = None
    if "test" in parts:
        judges = np.arange(len(y) - len(pictures["test"]), len(y))
    note = f"{describe(rows)}, with masks of {len(np.unique(y[y != IGNORED]))} classes"
    return RowSource(rows, y, "image", root.name, "mask", [note], judges, (str(root.resolve()),),
                     "segmentation")  # fmt: skip


def _boxes(root: Path) -> RowSource:
    found = read_detection_parts(root)
    parts = [found[p] for p in ("train", "val", "test") if p in found]
    truths = np.empty(sum(map(len, parts)), object)
    truths[:] = [truth for part in parts for truth in part.truths]
    rows: Any = join([part.rows for part in parts])
    about = headers(rows.paths.tolist())
    settings: dict[str, Any] = {}
    objects = sum(map(len, truths))
    note = f"{describe(rows)}, {objects} objects"
    if len({h.size for h in about}) == 1:
        reader = ImageReader(rows.reader.channels, about[0].size)
        rows = cached(Files(rows.paths, reader, rows.content))
    else:
        settings["size"] = common_size(about)
        note += ", scaled to {} x {} pixels".format(*settings["size"])
    judges = None
    if "test" in found:
        judges = np.arange(len(truths) - len(found["test"]), len(truths))
    return RowSource(rows, truths, "image", root.name, "objects", [note], judges,
                     (str(root.resolve()),), "detection", settings)  # fmt: skip


def _digest(target: Any) -> int:
    """A hash of a mask or of the objects of a picture."""
    if isinstance(target, Truth):
        content = target.boxes.tobytes() + "\0".join(map(str, target.labels)).encode()
    else:
        content = np.ascontiguousarray(target).tobytes()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def new_rows(kind: str, source: str | Path, edges: Any = None) -> Any:
    """Rows to be answered for, of the kind that a saved model takes."""
    if kind == "node":
        if edges is None:
            raise DataError("nodes are answered for with their edges; name the file with --edges")
        return Graph.from_csv(source, edges, only_numbers=True)
    if kind != "text" or not Path(source).is_file():
        return source
    found = read(source)
    columns = [c.name for c in found.schema if c.kind == "text"]
    if len(columns) != 1:
        named = ", ".join(map(repr, columns)) or "none"
        raise DataError(f"{str(source)!r} needs one column of texts, it has {named}")
    return found.frame[columns[0]].fill_null("").to_list()


def part_of(rows: Rows, index: NDArray[np.intp]) -> Rows:
    """Some of the rows."""
    return take(rows, torch.from_numpy(np.asarray(index, np.int64)))
