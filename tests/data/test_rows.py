"""Whatever people have becomes rows, and what was understood is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from groundstate.compute import rows as of
from groundstate.compute.rows import Files, Graphs, Ragged, Texts, Trajectories
from groundstate.data import ImageReader, Rereadable, rows_of
from groundstate.errors import DataError

RNG = np.random.default_rng(0)


class Pairs(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, i: int) -> tuple[Any, int]:
        return torch.full((2,), float(i)), i % 2


class Lines(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(["a b", "c"])


CASES: dict[str, tuple[Any, str, str]] = {
    "matrix": (RNG.normal(size=(4, 2)), "table", "4 rows of shape (2,), float64"),
    "pictures": (torch.zeros(4, 3, 8, 8), "image", "4 rows of shape (3, 8, 8), float32"),
    "words": (["to be", "or not"], "text", "2 texts of 5 to 6 bytes"),
    "array of words": (np.array(["a", "bc"]), "text", "2 texts of 1 to 2 bytes"),
    "objects": (np.array(["a", "bc"], object), "text", "2 texts of 1 to 2 bytes"),
    "lists": ([[1, 2], [3]], "sequence", "2 sequences of 1 to 2 items of shape (1,), float32"),
    "arrays": (
        [RNG.normal(size=(3, 2)), RNG.normal(size=(1, 2))],
        "sequence",
        "2 sequences of 1 to 3 items of shape (2,), float64",
    ),
    "cube": (RNG.normal(size=(4, 5, 2)), "sequence", "4 sequences of 5 items of shape (2,), float64"),
    "adjacency": (
        [csr_array(np.eye(3, k=1)), csr_array(np.ones((2, 2)))],
        "graph",
        "2 graphs of 2 to 3 nodes with 1 features and 2 to 4 edges",
    ),
    "episodes": (
        [{"observations": np.zeros((3, 2)), "actions": [0, 1], "rewards": [1.0, 2.0]}],
        "trajectory",
        "1 trajectories of 2 steps: observations (2,), actions (), rewards ()",
    ),
    "data set": (Pairs(), "table", "5 rows of shape (2,), float32"),
    "iterable data set": (Lines(), "text", "2 texts of 1 to 3 bytes"),
    "function": (Rereadable(lambda: iter([[1.0], [1.0, 2.0]])), "sequence", "2 sequences"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_forms_are_told_apart(case: str) -> None:
    value, kind, said = CASES[case]
    found = rows_of(value)
    assert found.kind == kind and said in of.describe(found.rows) and said in repr(found)
    assert rows_of(found.rows).kind == kind or kind == "image"
    assert (of.hashes(rows_of(value, kind).rows) == of.hashes(found.rows)).all()


def test_networkx_graphs() -> None:
    import networkx

    path = networkx.path_graph(3)
    found = rows_of([path, networkx.DiGraph([(0, 1)])])
    assert isinstance(found.rows, Graphs)
    assert found.rows.edges.lengths.tolist() == [4, 1]
    assert found.rows.nodes.values[:3, 0].tolist() == [1.0, 2.0, 1.0]
    networkx.set_node_attributes(path, {0: [1.0, 2.0], 1: [3.0, 4.0], 2: [5.0, 6.0]}, "x")
    assert rows_of([path]).rows.nodes.values.tolist() == [[1, 2], [3, 4], [5, 6]]
    del path.nodes[1]["x"]
    with pytest.raises(DataError, match="graph 0: some nodes have the attribute 'x'"):
        rows_of([path])


def test_features_and_edges() -> None:
    pair = (np.ones((2, 3)), [(0, 1)])
    assert rows_of([pair, {"nodes": np.ones((1, 3)), "edges": []}], "graph").kind == "graph"


def test_image_files(tmp_path: Path) -> None:
    from PIL import Image as image

    pixels = RNG.integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)
    for i, p in enumerate(pixels):
        (tmp_path / f"{i % 2}").mkdir(exist_ok=True)
        image.fromarray(p).save(tmp_path / f"{i % 2}" / f"{i}.png")
    found = rows_of(tmp_path)
    assert found.kind == "image" and isinstance(found.rows, Files)
    files = found.rows
    read = of.to_device(files, torch.device("cpu"))
    expected = torch.from_numpy(pixels[[0, 2, 1, 3]]).permute(0, 3, 1, 2).float() / 255
    assert torch.equal(read, expected)
    assert rows_of(files.paths.tolist()).kind == "image"
    small = Files.of(files.paths.tolist(), ImageReader(channels=1, size=(2, 3)))
    assert of.to_device(small, torch.device("cpu")).shape == (4, 1, 2, 3)
    image.fromarray(pixels[0, :2]).save(tmp_path / "other.png")
    with pytest.raises(DataError, match="different sizes"):
        of.to_device(rows_of(tmp_path).rows, torch.device("cpu"))
    (tmp_path / "broken.png").write_text("no picture")
    with pytest.raises(DataError, match=r"broken\.png' cannot be read as a picture"):
        of.to_device(Files.of([tmp_path / "broken.png"], ImageReader()), torch.device("cpu"))


def test_without_pillow_the_extra_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(DataError, match=r"groundstate\[vision\]"):
        of.to_device(rows_of(tmp_path).rows, torch.device("cpu"))


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (iter([1.0]), None, "can be read once"),
        (object(), None, "cannot tell what rows a object holds"),
        ([1.0], "texts", "kind='texts' is not known"),
        (["a", None], "text", "row 1 is NoneType"),
        (np.zeros(3), "table", r"expected an array \(n, d\)"),
        ([np.zeros((2, 2)), np.zeros((3, 2))], "image", "one size"),
        (3, "graph", "got int"),
        ([3], "graph", "graph 0 is int"),
        ([csr_array(np.ones((2, 3)))], "graph", r"graph 0: a sparse matrix \(n, n\) is needed"),
        ([{"observations": [1.0], "colour": [1.0]}], "trajectory", "same parts"),
        ([object()], "sequence", "expected a list of arrays"),
    ],
)
def test_what_cannot_be_taken_is_said(value: Any, kind: str | None, said: str) -> None:
    with pytest.raises(DataError, match=said):
        rows_of(value, kind)


def test_a_generator_is_refused() -> None:
    with pytest.raises(DataError, match="function that makes it"):
        Rereadable(iter([1]))  # type: ignore[arg-type]


def test_targets_of_a_data_set() -> None:
    found = rows_of(Pairs())
    assert found.y.tolist() == [0, 1, 0, 1, 0] and "with targets" in repr(found)


def test_containers_stay_what_they_are() -> None:
    ragged = Ragged.of([[1.0], [2.0, 3.0]])
    assert rows_of(ragged).kind == "sequence"
    assert rows_of(Trajectories(ragged)).kind == "trajectory"
    assert rows_of(Texts.of(["a"])).kind == "text"
