"""Regions of a map: the definitions cell by cell, gradients, shapes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.nn.detection.reference import align, pool

from groundstate.errors import DataError, ShapeError
from groundstate.nn.detection import roi
from groundstate.nn.detection.roi import crop_resize, roi_align, roi_pool

GRID = torch.arange(1.0, 17.0).view(1, 1, 4, 4)


def regions(n: int, images: int, side: float = 120.0, seed: int = 0) -> Any:
    """Boxes in and beyond an image of 100 × 100, with the image in front."""
    rng = np.random.default_rng(seed)
    corner = rng.uniform(-30, 90, (n, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(0.1, side, (n, 2))], 1)
    return np.concatenate([rng.integers(0, images, (n, 1)), boxes], 1)


def test_the_numbers_of_the_specification() -> None:
    pooled = roi_pool(GRID, [torch.tensor([[0.0, 0, 3, 3]])], 2)
    assert pooled[0, 0].tolist() == [[6, 8], [14, 16]]
    aligned = roi_align(GRID, [torch.tensor([[0.0, 0, 4, 4]])], 2)
    assert aligned[0, 0].tolist() == [[3.5, 5.5], [11.5, 13.5]]


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [0, 1, 2, 3])
def test_align_is_the_definition(ratio: int, aligned: bool) -> None:
    maps = np.random.default_rng(0).normal(size=(2, 3, 13, 11))
    boxes = regions(60, 2)
    found = roi_align(maps, boxes, 3, 0.125, ratio, aligned)
    expected = [align(maps[int(b[0])], b[1:], 3, 0.125, ratio, aligned) for b in boxes]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_pool_is_the_definition() -> None:
    maps = np.random.default_rng(0).normal(size=(2, 3, 13, 11))
    boxes = regions(200, 2)
    for size in (1, 3, 7):
        found = roi_pool(maps, boxes, size, 0.125)
        expected = [pool(maps[int(b[0])], b[1:], size, 0.125) for b in boxes]
        np.testing.assert_array_equal(found, expected)


def test_any_box_gives_one_shape() -> None:
    maps, boxes = torch.randn(2, 5, 8, 9), torch.tensor(regions(20, 2), dtype=torch.float32)
    for f in (roi_align, roi_pool):
        assert f(maps, boxes, (3, 4), 0.1).shape == (20, 5, 3, 4)
        assert f(maps, [torch.zeros(0, 4), torch.zeros(0, 4)], 7, 0.1).shape == (0, 5, 7, 7)
    assert crop_resize(maps, boxes, (6, 5)).shape == (20, 5, 6, 5)
    assert crop_resize(maps[0], torch.zeros(0, 4)).shape == (0, 5, 227, 227)


def test_lists_and_tables_of_boxes_agree() -> None:
    maps, table = torch.randn(3, 2, 10, 10), torch.tensor(regions(30, 3), dtype=torch.float32)
    table = table[table[:, 0].argsort(stable=True)]
    table = table[table[:, 0] != 1]  # an image without boxes
    listed = [table[table[:, 0] == b, 1:] for b in range(3)]
    for f in (roi_align, roi_pool):
        torch.testing.assert_close(f(maps, table, 4, 0.1), f(maps, listed, 4, 0.1))
    torch.testing.assert_close(crop_resize(maps, table, 4), crop_resize(maps, listed, 4))


def test_a_batch_is_a_loop_and_arrays_are_tensors() -> None:
    maps, table = torch.randn(2, 3, 10, 10, dtype=torch.float64), torch.tensor(regions(12, 2))
    for f in (roi_align, roi_pool):
        whole = f(maps, table, 3, 0.1)
        for row, found in zip(table, whole):
            alone = f(maps[int(row[0]), None], [row[None, 1:]], 3, 0.1)[0]
            torch.testing.assert_close(found, alone)
        np.testing.assert_array_equal(f(maps.numpy(), table.numpy(), 3, 0.1), whole.numpy())
        assert f(maps.float(), table.float(), 3, 0.1).dtype == torch.float32


def test_a_linear_image_is_reproduced_inside() -> None:
    y, x = torch.meshgrid(torch.arange(20.0) + 0.5, torch.arange(20.0) + 0.5, indexing="ij")
    plane = (2 * x + 3 * y)[None, None]
    found = roi_align(plane, [torch.tensor([[3.0, 4, 15, 10]])], (2, 3))[0, 0]
    middles = 2 * torch.tensor([5.0, 9, 13]) + 3 * torch.tensor([[5.5], [8.5]])
    torch.testing.assert_close(found, middles)


def test_crops_are_warped_images() -> None:
    image, whole, part = (
        torch.rand(3, 12, 9),
        torch.tensor([[0.0, 0, 9, 12]]),
        torch.tensor([[2.0, 3, 8, 11]]),
    )
    larger = torch.nn.functional.interpolate(image[None], (24, 18), mode="bilinear")
    for found, expected in (
        (crop_resize(image, whole, (12, 9)), image[None]),
        (crop_resize(image, part, (8, 6)), image[None, :, 3:11, 2:8]),
        (crop_resize(image, whole, (24, 18)), larger),
        (crop_resize(image, part, 5), roi_align(image[None], [part], 5, sampling_ratio=1)),
    ):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_gradients_in_double_precision() -> None:
    maps = torch.randn(2, 2, 6, 5, dtype=torch.float64, requires_grad=True)
    boxes = torch.tensor(regions(6, 2), dtype=torch.float64)
    for ratio, aligned in ((2, True), (0, True), (2, False)):
        arguments = (maps, boxes, 3, 0.05, ratio, aligned)
        assert torch.autograd.gradcheck(roi_align, arguments)
    assert torch.autograd.gradcheck(lambda m: roi_pool(m, boxes, 2, 0.05), (maps,))
    assert torch.autograd.gradcheck(lambda m: crop_resize(m, boxes, 3), (maps,))


def test_half_precision_stays() -> None:
    maps, boxes = torch.randn(1, 4, 8, 8), torch.tensor([[0, 1.0, 1, 7, 7]])
    half = roi_align(maps.bfloat16(), boxes, 4)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), roi_align(maps, boxes, 4), atol=0.05, rtol=0.05)


def test_bad_arguments_are_named() -> None:
    maps = torch.zeros(2, 1, 4, 4)
    with pytest.raises(ShapeError, match=r"features need shape \(B, C, H, W\), got \(4, 4\)"):
        roi_align(maps[0, 0], torch.zeros(1, 5), 2)
    with pytest.raises(ShapeError, match=r"boxes need shape \(R, 5\).*got \(3, 4\)"):
        roi_align(maps, torch.zeros(3, 4), 2)
    with pytest.raises(ShapeError, match="a list of 2, one for each image, got 1"):
        roi_pool(maps, [torch.zeros(3, 4)], 2)
    with pytest.raises(ShapeError, match=r"boxes\[1\] need shape \(n, 4\), got \(4,\)"):
        roi_pool(maps, [torch.zeros(3, 4), torch.zeros(4)], 2)
    with pytest.raises(DataError, match="images 0 to 2, but features hold 2 images"):
        roi_align(maps, torch.tensor([[0.0, 0, 0, 1, 1], [2, 0, 0, 1, 1]]), 2)
    with pytest.raises(ValueError, match="size needs positive numbers"):
        roi_align(maps, torch.zeros(0, 5), 0)
    with pytest.raises(ValueError, match="sampling_ratio is at least 0"):
        roi_align(maps, torch.zeros(0, 5), 2, sampling_ratio=-1)
    with pytest.raises(ValueError, match="boxes holds NaN"):
        roi_align(maps, torch.full((1, 5), torch.nan), 2)


def test_compiled_loops_and_bags_of_pixels_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = torch.tensor(regions(40, 2), dtype=torch.float64)
    maps = torch.randn(2, 3, 13, 11, dtype=torch.float64, generator=torch.manual_seed(0))

    def both(f: Any) -> tuple[torch.Tensor, torch.Tensor]:
        given = maps.clone().requires_grad_()
        out = f(given, boxes, (3, 4), 0.125)
        (out * torch.arange(out.numel()).view(out.shape)).sum().backward()
        assert given.grad is not None
        return out.detach(), given.grad

    compiled = [both(f) for f in (roi_align, roi_pool)]
    monkeypatch.setattr(roi, "_compiled", lambda maps: False)
    torch.testing.assert_close(compiled, [both(f) for f in (roi_align, roi_pool)])


def test_equal_pixels_of_a_cell_share_no_gradient() -> None:
    maps = torch.ones(1, 1, 4, 4, requires_grad=True)
    roi_pool(maps, [torch.tensor([[0.0, 0, 3, 3]])], 2).sum().backward()
    assert maps.grad is not None
    assert maps.grad[0, 0].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
