"""Pictures and masks in files: paired by name, palettes, sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from groundstate.compute.rows import count, to_device
from groundstate.data.images.folder import ImageFolder
from groundstate.data.images.masks import (
    is_mask_folder,
    masked_pictures,
    picture_list,
    read_masks,
)
from groundstate.errors import DataError, ShapeError

CPU = torch.device("cpu")


def folder(root: Path, sizes: list[tuple[int, int]], palette: bool = False) -> Path:
    rng = np.random.default_rng(0)
    for part in ("images", "masks"):
        (root / part).mkdir(parents=True)
    for i, (height, width) in enumerate(sizes):
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / "images" / f"{i}.jpg", quality=100)
        mask = rng.integers(0, 3, (height, width), dtype=np.uint8)
        mask[0, 0] = 255
        image = Image.fromarray(mask)
        if palette:
            image = image.convert("L")
            image.putpalette([v for c in range(256) for v in (c, 255 - c, 7)])
        image.save(root / "masks" / f"{i}.png")
    return root


@pytest.mark.parametrize("palette", [False, True])
def test_a_folder_of_pictures_and_masks(tmp_path: Path, palette: bool) -> None:
    root = folder(tmp_path, [(5, 6)] * 3, palette)
    assert is_mask_folder(root) and not is_mask_folder(root / "images")
    with pytest.raises(DataError, match=r"labels of pixels; give it to groundstate.Segmenter"):
        ImageFolder(root)
    rows, masks = masked_pictures(root)
    assert count(rows) == 3 and to_device(rows, CPU).shape == (3, 3, 5, 6)
    assert masks.shape == (3, 5, 6) and set(np.unique(masks)) == {0, 1, 2, 255}
    again, same = masked_pictures(root / "images", root / "masks")
    assert (same == masks).all() and torch.equal(to_device(again, CPU), to_device(rows, CPU))
    reverse = [root / "masks" / f"{i}.png" for i in (2, 0, 1)]
    assert (masked_pictures(root / "images", reverse)[1] == masks).all()
    assert (masked_pictures(root / "images", masks)[1] == masks).all()
    assert picture_list(root / "images") is None


def test_different_sizes_are_padded_and_ignored(tmp_path: Path) -> None:
    root = folder(tmp_path, [(5, 6), (4, 8)])
    rows, masks = masked_pictures(root)
    x = to_device(rows, CPU)
    assert x.shape == (2, 3, 5, 8) and masks.shape == (2, 5, 8)
    assert (masks[0, :, 6:] == 255).all() and (masks[1, 4:] == 255).all()
    assert (x[0, :, :, 6:] == 0).all() and (x[1, :, 4:] == 0).all()
    listed = picture_list(root / "images")
    assert listed is not None
    assert [tuple(to_device(one, CPU).shape) for one in listed] == [(1, 3, 5, 6), (1, 3, 4, 8)]
    arrays = [np.ones((2, 5, 6)), np.ones((2, 4, 8))]
    labels = [np.ones((5, 6), int), np.zeros((4, 8), int)]
    X, y = masked_pictures(arrays, labels)
    assert X.shape == (2, 2, 5, 8) and X.sum() == 2 * 62 and (y == 255).sum() == 10 + 8


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    root = folder(tmp_path, [(5, 6)] * 2)
    (root / "masks" / "1.png").rename(root / "masks" / "one.png")
    with pytest.raises(DataError, match=r"images/1.jpg' has no mask: none of 2 mask files .* '1'"):
        masked_pictures(root)
    (root / "images" / "1.jpg").unlink()
    with pytest.raises(DataError, match="masks/one.png' has no picture called 'one'"):
        masked_pictures(root)
    (root / "masks" / "one.png").unlink()
    Image.new("L", (6, 7)).save(root / "masks" / "0.png")
    with pytest.raises(ShapeError, match=r"0.jpg' has 5 x 6 pixels, its mask '.*0.png' 7 x 6"):
        masked_pictures(root)
    Image.new("RGB", (6, 5)).save(root / "masks" / "0.png")
    with pytest.raises(DataError, match=r"0.png' has colours \(mode 'RGB'\)"):
        read_masks([str(root / "masks" / "0.png")])
    with pytest.raises(DataError, match="has no folders 'images' and 'masks'"):
        masked_pictures(tmp_path / "images")


def test_black_and_white_files_are_two_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    truths = []
    for i, size in enumerate([(6, 8), (8, 8)]):
        mask = rng.integers(0, 2, size)
        truths.append(mask)
        picture = rng.integers(0, 255, (*size, 3), dtype=np.uint8)
        Image.fromarray(picture).save(tmp_path / "images" / f"{i}.png")
        Image.fromarray((255 * mask).astype(np.uint8)).save(tmp_path / "masks" / f"{i}.png")
    files = sorted(map(str, (tmp_path / "masks").iterdir()))
    for found, truth in zip(read_masks(files), truths, strict=True):
        np.testing.assert_array_equal(found, truth)
    _, y = masked_pictures(tmp_path)
    assert np.unique(y).tolist() == [0, 1, 255] and (y[0, 6:] == 255).all()  # what was added
    Image.fromarray(np.array([[0, 1, 255]], np.uint8)).save(files[0])
    assert np.unique(np.concatenate([m.ravel() for m in read_masks(files)])).tolist() == [0, 1, 255]
