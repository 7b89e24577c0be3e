"""Copies of well-known sets, read and counted."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundstate.data.catalogue.cards import CARDS, Card
from groundstate.data.catalogue.wordnet import read_wordnet
from groundstate.errors import DataError

_PICTURES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
Read = tuple[Any, dict[str, int]]


@dataclass(frozen=True, repr=False)
class Named:
    """A copy of a set that was read.

    Attributes
    ----------
    card : what is known about the set
    data : what it holds; see ``read_named``
    counts : number of each thing in this copy
    """

    card: Card
    data: Any
    counts: Mapping[str, int]

    def __repr__(self) -> str:
        return f"{self.card.name}: " + ", ".join(f"{n:,} {w}" for w, n in self.counts.items())


def read_named(name: str, path: str | Path, *, check: bool = True) -> Named:
    """Read a copy of a well-known set that is on this machine; nothing is downloaded.

    ============  ===========================================================================
    MNIST         ``ImageSet`` by part
    CIFAR-10      ``ImageSet`` by part
    ImageNet      paths of pictures by synset
    LSUN          paths of pictures by part ("train", "val", "test") and scene
    LAION         polars ``LazyFrame`` of the columns URL, TEXT and others
    ShapeNetCore  folders of models by synset
    ShapeNetSem   ids of models by category
    WordNet       ``Synset`` by id
    ============  ===========================================================================

    Parameters
    ----------
    name : of ``groundstate.data.CARDS``
    path : file or folder, see ``CARDS[name].layout``
    check : refuse a copy whose counts are not those of the card

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for model in ("02691156/a", "02691156/b", "02828884/c"):
    ...         (pathlib.Path(folder) / model).mkdir(parents=True)
    ...     read_named("ShapeNetCore", folder, check=False)
    ShapeNetCore: 3 models, 2 classes
    """
    if name not in CARDS:
        raise DataError(f"there is no set named {name!r}; there are {', '.join(CARDS)}")
    card, root = CARDS[name], Path(path)
    if not root.exists():
        raise DataError(
            f"there is nothing at {str(path)!r}; {name} is offered at {card.home}, and a copy is a "
            f"{card.layout}"
        )
    data, counts = READERS[name](root)
    if check:
        card.check(counts)
    return Named(card, data, counts)


def _labelled(read: Callable[[Path], Any]) -> Callable[[Path], Read]:
    def found(root: Path) -> Read:
        parts = read(root)
        counts = {part: len(rows) for part, rows in parts.items()}
        each: Counter[Any] = Counter()
        for rows in parts.values():
            each.update(rows.counts())
        return parts, counts | _spread(each)

    return found


def _spread(each: Mapping[Any, int]) -> dict[str, int]:
    sizes = list(each.values()) or [0]
    return {"classes": len(each), "least of a class": min(sizes), "most of a class": max(sizes)}


def _mnist(root: Path) -> Any:
    from groundstate.data.images.formats import mnist

    return mnist(root)


def _cifar10(root: Path) -> Any:
    from groundstate.data.images.formats import cifar10

    return cifar10(root)


def _pictures(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in _PICTURES)


def _folders(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        raise DataError(f"{str(root)!r} is a file, a folder is needed")
    return (p for p in sorted(root.iterdir()) if p.is_dir())


def _imagenet(root: Path) -> Read:
    found = {folder.name: _pictures(folder) for folder in _folders(root)}
    return found, {"pictures": sum(map(len, found.values())), "classes": len(found)}


def _lsun(root: Path) -> Read:
    found: dict[str, dict[str, list[Path]]] = {"train": {}, "val": {}, "test": {}}
    for folder in _folders(root):
        scene, _, part = folder.name.rpartition("_")
        if folder.name == "test":
            found["test"]["all"] = _pictures(folder)
        elif part in ("train", "val"):
            found[part][scene] = _pictures(folder)
    sizes = {part: {s: len(p) for s, p in scenes.items()} for part, scenes in found.items()}
    checked = list(sizes["val"].values()) or [0]
    return found, {
        **_spread(sizes["train"]),
        "least of validation": min(checked), "most of validation": max(checked),
        "test": sum(sizes["test"].values()),
    }  # fmt: skip


def _laion(root: Path) -> Read:
    import polars as pl

    files = sorted(root.glob("*.parquet")) if root.is_dir() else [root]
    if not files:
        raise DataError(f"{str(root)!r} holds no parquet file")
    frame = pl.scan_parquet(files)
    names = {name.upper() for name in frame.collect_schema().names()}
    for wanted in ("URL", "TEXT"):
        if wanted not in names:
            raise DataError(f"{files[0].name!r} has no column {wanted}; is it LAION's?")
    return frame, {"pairs": int(frame.select(pl.len()).collect().item())}


def _shapenet_core(root: Path) -> Read:
    found = {
        folder.name: [p for p in sorted(folder.iterdir()) if p.is_dir()]
        for folder in _folders(root)
        if folder.name.isdigit()
    }
    return found, {"models": sum(map(len, found.values())), "classes": len(found)}


def _shapenet_sem(root: Path) -> Read:
    file = root / "metadata.csv" if root.is_dir() else root
    if not file.is_file():
        raise DataError(f"{str(root)!r} holds no metadata.csv")
    found: dict[str, list[str]] = {}
    models = 0
    with file.open(newline="", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        if not {"fullId", "category"} <= set(rows.fieldnames or ()):
            raise DataError(f"{str(file)!r} has no columns fullId and category")
        for row in rows:
            models += 1
            for category in filter(None, (row["category"] or "").split(",")):
                found.setdefault(category, []).append(row["fullId"])
    return found, {"models": models, "classes": len(found)}


def _wordnet(root: Path) -> Read:
    found = read_wordnet(root)
    return found, {"synsets": len(found)}


READERS: dict[str, Callable[[Path], Read]] = {
    "MNIST": _labelled(_mnist),
    "CIFAR-10": _labelled(_cifar10),
    "ImageNet": _imagenet,
    "LSUN": _lsun,
    "LAION": _laion,
    "ShapeNetCore": _shapenet_core,
    "ShapeNetSem": _shapenet_sem,
    "WordNet": _wordnet,
}
