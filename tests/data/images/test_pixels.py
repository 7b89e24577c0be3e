"""Pictures of 8 bits as rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate.compute import rows as of
from groundstate.compute.rows import Pixels, recoloured, resized
from groundstate.data import ImageSet, channel_moments, rows_of
from groundstate.errors import DataError, ShapeError

CPU = torch.device("cpu")
VALUES = np.random.default_rng(0).integers(0, 256, (7, 3, 4, 5), dtype=np.uint8)


def test_rows_are_the_values_over_255() -> None:
    rows = Pixels(VALUES)
    assert len(rows) == 7 and rows.shape == (7,) and not of.in_memory(rows)
    assert torch.equal(rows.to(CPU), torch.from_numpy(VALUES).float() / 255)
    assert rows.floating(torch.float64).to(CPU).dtype == torch.float64
    taken = of.take(rows, torch.tensor([3, 3, 0]))
    assert np.array_equal(taken.raw(), VALUES[[3, 3, 0]])
    assert np.array_equal(rows[2:4][[1]].raw(), VALUES[[3]])


def test_joined_and_hashed_by_content() -> None:
    rows = Pixels(VALUES)
    both = of.join([rows[:2], rows[5:]])
    assert both.values is VALUES and np.array_equal(both.raw(), VALUES[[0, 1, 5, 6]])
    other = of.join([rows[:2], Pixels(VALUES[5:].copy())])
    assert np.array_equal(other.raw(), both.raw())
    assert np.array_equal(of.hashes(both), of.hashes(rows)[[0, 1, 5, 6]])
    assert np.array_equal(of.hashes(other), of.hashes(both))
    with pytest.raises(DataError, match="different forms"):
        of.join([rows, Pixels(VALUES[:, :1])])


def test_a_memory_map_is_read_row_by_row(tmp_path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    mapped = Pixels(np.load(tmp_path / "a.npy", mmap_mode="r"))
    assert torch.equal(mapped[[6, 1]].to(CPU), Pixels(VALUES)[[6, 1]].to(CPU))
    assert np.array_equal(mapped.hashes(), Pixels(VALUES).hashes())


def test_colours_and_sizes() -> None:
    x = torch.rand(2, 3, 4, 6)
    grey = recoloured(x, 1)
    assert torch.allclose(grey[:, 0], 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2])
    assert torch.equal(recoloured(grey, 3)[:, 2], grey[:, 0])
    assert torch.equal(recoloured(torch.cat([x, x[:, :1]], 1), 3), x)  # alpha is dropped
    assert recoloured(torch.rand(1, 2, 3, 3), 1).shape == (1, 1, 3, 3)
    assert recoloured(torch.rand(1, 4, 3, 3), 1).shape == (1, 1, 3, 3)
    with pytest.raises(ShapeError, match="5 channels have no form in 3"):
        recoloured(torch.rand(1, 5, 2, 2), 3)
    assert torch.allclose(resized(torch.ones(1, 1, 8, 8), (3, 5)), torch.ones(1, 1, 3, 5))
    half = resized(torch.arange(4.0).view(1, 1, 1, 4), (1, 2))
    assert half.flatten().tolist() == pytest.approx([5 / 7, 16 / 7], abs=1e-3)  # antialiased
    rows = Pixels(VALUES, channels=1, size=(2, 2))
    assert rows.picture == (1, 2, 2) and rows.to(CPU).shape == (7, 1, 2, 2)
    assert rows[:0].to(CPU).shape == (0, 1, 2, 2)


@pytest.mark.parametrize("values", [np.zeros((2, 3, 4), np.uint8), np.zeros((2, 1, 3, 4))])
def test_only_pictures_of_8_bits(values: np.ndarray) -> None:
    with pytest.raises(DataError, match="arrays of uint8"):
        Pixels(values)


def test_arrays_of_uint8_stay_so() -> None:
    for value in (VALUES, torch.from_numpy(VALUES)):
        found = rows_of(value)
        assert found.kind == "image" and isinstance(found.rows, Pixels)
    assert rows_of(VALUES[:, 0], "image").rows.picture == (1, 4, 5)
    assert rows_of(ImageSet(Pixels(VALUES), np.arange(7), tuple(range(7)))).kind == "image"


def test_moments_are_those_of_all_pixels() -> None:
    rows = Pixels(np.random.default_rng(1).integers(0, 256, (1100, 2, 3, 3), dtype=np.uint8))
    x = rows.to(CPU).double()
    mean, std = channel_moments(rows)
    assert torch.allclose(mean, x.mean((0, 2, 3)), atol=1e-7)
    assert torch.allclose(std, x.std((0, 2, 3), correction=0), atol=1e-7)
    weight = torch.ones(1100)
    weight[5] = 2
    twice = channel_moments(of.join([rows, rows[5]]))
    for a, b in zip(channel_moments(rows, weight), twice, strict=True):
        assert torch.allclose(a, b, atol=1e-12)
    assert channel_moments(torch.full((2, 1, 2, 2), 7.0))[1].tolist() == [1.0]
