"""Folders of pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from groundstate.compute.rows import Files, Pixels
from groundstate.data import ImageFolder, ImageReader, read_images, rows_of
from groundstate.data.images import cache as caches
from groundstate.data.images.folder import is_image_folder
from groundstate.errors import DataError

RNG = np.random.default_rng(0)
CPU = torch.device("cpu")


def save(path: Path, size: tuple[int, int] = (5, 6), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    depth = {"L": (), "RGB": (3,), "RGBA": (4,), "LA": (2,)}[mode]
    Image.fromarray(RNG.integers(0, 256, (*size, *depth), dtype=np.uint8), mode).save(path)


def folder(root: Path, parts: tuple[str, ...] = ("train", "val", "test"), **kw: object) -> Path:
    for part in parts:
        for c in ("cat", "dog"):
            for i in range(3):
                save(root / part / c / f"{i}.png", **kw)  # type: ignore[arg-type]
    return root


def test_parts_classes_and_pixels(tmp_path: Path) -> None:
    found = ImageFolder(folder(tmp_path))
    assert repr(found) == "2 classes of pictures of 3 x 5 x 6: train 6, val 6, test 6"
    assert found.classes == ("cat", "dog") and found.train.counts() == {"cat": 3, "dog": 3}
    assert isinstance(found.test.rows, Pixels) and found.val.y.tolist() == ["cat"] * 3 + ["dog"] * 3
    pixel = np.asarray(Image.open(tmp_path / "train" / "dog" / "1.png")).transpose(2, 0, 1)
    assert np.array_equal(found.train.rows.raw()[4], pixel)
    mean, std = found.moments()
    x = found.train.rows.to(CPU).double()
    assert torch.allclose(mean, x.mean((0, 2, 3))) and std.shape == (3,)
    assert set(read_images(tmp_path)) == {"train", "val", "test"} and is_image_folder(tmp_path)


def test_without_parts_all_is_training(tmp_path: Path) -> None:
    for c in ("a", "b"):
        save(tmp_path / c / "deep" / "1.jpg")  # folders below belong to the class
    found = ImageFolder(tmp_path, cache=None)
    assert list(found.parts) == ["train"] and isinstance(found.train.rows, Files)
    assert found.train.y.tolist() == ["a", "b"]
    with pytest.raises(DataError, match="has no folder 'test'"):
        _ = found.test
    both = rows_of(found.train)
    assert both.kind == "image" and len(both.rows) == 2


def test_sizes(tmp_path: Path) -> None:
    for i, size in enumerate([(4, 8), (6, 8), (8, 20)]):
        save(tmp_path / "a" / f"{i}.png", size)
        save(tmp_path / "b" / f"{i}.png", size)
    assert ImageFolder(tmp_path).size == (6, 8)  # the median
    assert ImageFolder(tmp_path, size=3).train.rows.picture == (3, 3, 3)
    assert ImageFolder(tmp_path, size=(2, 4)).train.rows.picture == (3, 2, 4)
    large = tmp_path / "large"
    for c, side in (("a", 300), ("b", 500)):
        save(large / c / "1.png", (side, side))
    assert ImageFolder(large).size == (224, 224)


def test_a_camera_held_sideways(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    for c in "ab":
        (tmp_path / c).mkdir()
        Image.new("RGB", (10, 4)).save(tmp_path / c / "1.jpg", exif=exif)
    assert ImageFolder(tmp_path).size == (10, 4)
    assert ImageFolder(tmp_path).train.rows.picture == (3, 10, 4)


def test_grey_stays_grey(tmp_path: Path) -> None:
    found = ImageFolder(folder(tmp_path, ("train",), mode="L"))
    assert found.channels == 1 and found.train.rows.picture == (1, 5, 6)
    assert ImageFolder(tmp_path, channels=3).train.rows.picture == (3, 5, 6)


def test_what_is_converted_is_said_once(tmp_path: Path) -> None:
    folder(tmp_path, ("train",))
    save(tmp_path / "train" / "cat" / "grey.png", mode="L")
    with pytest.warns(UserWarning, match=r"grey\.png' is grey among coloured pictures") as said:
        assert ImageFolder(tmp_path).channels == 3
    assert len(said) == 1
    (tmp_path / "train" / "cat" / "grey.png").unlink()
    for i in range(2):
        save(tmp_path / "train" / "dog" / f"clear{i}.png", mode="RGBA")
    with pytest.warns(UserWarning, match=r"clear0\.png' and 1 more are partly transparent"):
        rows = ImageFolder(tmp_path).train.rows
    read = np.asarray(Image.open(tmp_path / "train" / "dog" / "clear0.png"))[..., :3]
    assert np.array_equal(rows.raw()[6], read.transpose(2, 0, 1))


def test_sixteen_bits_are_scaled(tmp_path: Path) -> None:
    deep = np.array([[0, 256, 65535], [512, 1024, 40000]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "a.png")
    read = ImageReader(channels=1).pixels([str(tmp_path / "a.png")])
    assert np.array_equal(read[0, 0], (deep >> 8).astype(np.uint8))
    Image.fromarray(deep.astype(np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"a\.tif' has pixels of 32 bits"):
        ImageReader().pixels([str(tmp_path / "a.tif")])


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        ImageFolder(tmp_path / "none")
    root = folder(tmp_path / "one", ("train",))
    broken = root / "train" / "cat" / "broken.png"
    broken.write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"broken\.png' cannot be read as a picture"):
        ImageFolder(root)
    whole = (root / "train" / "cat" / "0.png").read_bytes()
    broken.write_bytes(whole[:60])  # the header is there, the pixels are not
    with pytest.raises(DataError, match=r"broken\.png' cannot be read as a picture"):
        ImageFolder(root)
    broken.unlink()
    (root / "train" / "cow").mkdir()
    with pytest.raises(DataError, match=r"class folder .*cow' holds no image files"):
        ImageFolder(root)
    (root / "train" / "cow").rmdir()
    save(root / "test" / "cow" / "1.png")
    with pytest.raises(DataError, match=r"1\.png' of test is of class 'cow', which the training"):
        ImageFolder(root)
    save(root / "train" / "loose.png")
    with pytest.raises(DataError, match=r"loose\.png' is in no class folder"):
        ImageFolder(root)
    only = tmp_path / "two"
    save(only / "a" / "1.png")
    with pytest.raises(DataError, match="one class alone, 'a'"):
        ImageFolder(only)
    save(tmp_path / "three" / "test" / "a" / "1.png")
    with pytest.raises(DataError, match="has test but no folder 'train'"):
        ImageFolder(tmp_path / "three")
    (tmp_path / "four").mkdir()
    with pytest.raises(DataError, match="holds no class folders"):
        read_images(tmp_path / "four")
    assert not is_image_folder(tmp_path / "four") and not is_image_folder(tmp_path / "none")


def test_pixels_are_kept_in_a_folder(tmp_path: Path) -> None:
    root, kept = folder(tmp_path / "data"), tmp_path / "cache"
    first = ImageFolder(root, cache=kept)
    assert isinstance(first.train.rows.values, np.memmap) and len(list(kept.iterdir())) == 3
    plain = ImageFolder(root)
    assert np.array_equal(first.train.rows.raw(), plain.train.rows.raw())
    times = {p.name: p.stat().st_mtime_ns for p in kept.iterdir()}
    again = ImageFolder(root, cache=kept)
    assert {p.name: p.stat().st_mtime_ns for p in kept.iterdir()} == times
    assert np.array_equal(again.test.rows.raw(), plain.test.rows.raw())
    save(root / "train" / "cat" / "0.png")
    changed = ImageFolder(root, cache=kept)
    assert len(list(kept.iterdir())) == 4
    assert not np.array_equal(changed.train.rows.raw(), plain.train.rows.raw())


def test_many_pictures_stay_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MEMORY", 100)
    assert isinstance(ImageFolder(folder(tmp_path)).train.rows, Files)
