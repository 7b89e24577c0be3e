"""Copies of well-known sets: readers, counts, and what is said of incomplete ones."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundstate.data import CARDS, read_named
from groundstate.data.catalogue.named import READERS
from groundstate.errors import DataError


def touched(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")


def test_every_card_has_a_reader_and_counts() -> None:
    assert list(CARDS) == list(READERS)
    assert all(card.counts and card.layout and card.home for card in CARDS.values())
    assert CARDS["CIFAR-10"].counts["train"][0] + CARDS["CIFAR-10"].counts["test"][0] == 60_000
    assert CARDS["ShapeNetCore"].counts["classes"] == (55, 55)


def test_mnist(tmp_path: Path) -> None:
    for part, n in (("train", 20), ("t10k", 10)):
        pixels = np.zeros((n, 28, 28), np.uint8).tobytes()
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(
            bytes([0, 0, 8, 3]) + struct.pack(">3I", n, 28, 28) + pixels
        )
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(
            bytes([0, 0, 8, 1]) + struct.pack(">I", n) + bytes(i % 10 for i in range(n))
        )
    found = read_named("MNIST", tmp_path, check=False)
    assert found.counts["train"] == 20 and found.counts["classes"] == 10
    assert repr(found).startswith("MNIST: 20 train, 10 test")
    with pytest.raises(
        DataError, match="has 20 train, a complete one has 60,000; pass check=False"
    ):
        read_named("MNIST", tmp_path)


def test_cifar(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        rows = {
            b"data": rng.integers(0, 256, (10, 3072), dtype=np.uint8),
            b"labels": list(range(10)),
        }
        (tmp_path / name).write_bytes(pickle.dumps(rows))
    found = read_named("CIFAR-10", tmp_path, check=False)
    assert found.counts["train"] == 50 and found.counts["least of a class"] == 6
    whole = {"train": 50_000, "test": 10_000, "classes": 10}
    CARDS["CIFAR-10"].check(whole | {"least of a class": 6000, "most of a class": 6000})
    with pytest.raises(DataError, match="5,999 least of a class"):
        CARDS["CIFAR-10"].check(whole | {"least of a class": 5999, "most of a class": 6001})


def test_folders_of_pictures(tmp_path: Path) -> None:
    touched(tmp_path / "net", "n01440764/a.JPEG", "n01440764/b.JPEG", "n02084071/c.JPEG")
    found = read_named("ImageNet", tmp_path / "net", check=False)
    assert found.counts == {"pictures": 3, "classes": 2}
    assert [p.name for p in found.data["n01440764"]] == ["a.JPEG", "b.JPEG"]
    with pytest.raises(DataError, match="14,000,001 or more"):
        read_named("ImageNet", tmp_path / "net")
    scenes = tmp_path / "lsun"
    touched(scenes, "bedroom_train/0/1/a.webp", "bedroom_val/b.webp", "living_room_train/c.webp")
    touched(scenes, "living_room_val/d.webp", "test/e.webp", "notes.txt")
    found = read_named("LSUN", scenes, check=False)
    assert sorted(found.data["train"]) == ["bedroom", "living_room"]
    assert found.counts["classes"] == 2 and found.counts["test"] == 1
    with pytest.raises(DataError, match="2 classes, a complete one has 10"):
        read_named("LSUN", scenes)


def test_laion(tmp_path: Path) -> None:
    frame = pl.DataFrame({"URL": ["http://a", "http://b"], "TEXT": ["a cat", "a dog"]})
    frame.write_parquet(tmp_path / "part-0.parquet")
    frame.write_parquet(tmp_path / "part-1.parquet")
    found = read_named("LAION", tmp_path)
    assert found.counts == {"pairs": 4}
    assert found.data.select("TEXT").head(1).collect().item() == "a cat"
    frame.drop("TEXT").write_parquet(tmp_path / "other.parquet")
    with pytest.raises(DataError, match="no column TEXT"):
        read_named("LAION", tmp_path / "other.parquet")


def test_shapenet(tmp_path: Path) -> None:
    touched(tmp_path, "02691156/m1/model.obj", "02691156/m2/model.obj", "02828884/m3/model.obj")
    touched(tmp_path, "taxonomy.json")
    found = read_named("ShapeNetCore", tmp_path, check=False)
    assert found.counts == {"models": 3, "classes": 2}
    with pytest.raises(DataError, match="48,735 to 53,865"):
        read_named("ShapeNetCore", tmp_path)
    (tmp_path / "metadata.csv").write_text(
        'fullId,category,up\nwss.1,"Chair,OfficeChair",y\nwss.2,Chair,y\nwss.3,,y\n'
    )
    found = read_named("ShapeNetSem", tmp_path, check=False)
    assert found.counts == {"models": 3, "classes": 2}
    assert found.data["Chair"] == ["wss.1", "wss.2"]


def test_wordnet(tmp_path: Path) -> None:
    (tmp_path / "dict").mkdir()
    (tmp_path / "dict" / "data.noun").write_text(
        "  1 This is the licence\n"
        "02084071 05 n 03 dog 0 domestic_dog 0 Canis_familiaris 0 001 @ 02083346 n 0000 | a member\n"
    )
    (tmp_path / "dict" / "data.adj").write_text(
        "00002312 00 s 02 abaxial 0 dorsal(a) 4 000 | facing away\n"
    )
    found = read_named("WordNet", tmp_path, check=False)
    dog = found.data["n02084071"]
    assert dog.words == ("dog", "domestic dog", "Canis familiaris") and dog.gloss == "a member"
    assert dog.above == ("n02083346",)
    assert found.data["a00002312"].words == ("abaxial", "dorsal")
    with pytest.raises(DataError, match="2 synsets, a complete one has 100,001 or more"):
        read_named("WordNet", tmp_path)
    (tmp_path / "dict" / "data.verb").write_text("nonsense\n")
    with pytest.raises(DataError, match="no synset of WordNet"):
        read_named("WordNet", tmp_path, check=False)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no set named 'mnist'"):
        read_named("mnist", tmp_path)
    with pytest.raises(DataError, match="offered at https://laion.ai"):
        read_named("LAION", tmp_path / "none")
    for name in ("MNIST", "LAION", "ShapeNetSem", "WordNet"):
        with pytest.raises(DataError):
            read_named(name, tmp_path)
