"""Anchors, which truth each takes, and balanced samples of them."""

from __future__ import annotations

import math

import pytest
import torch

from groundstate.nn.detection.anchors import IGNORED, NEGATIVE, AnchorGenerator, AnchorMatcher
from groundstate.nn.detection.boxes import iou
from groundstate.nn.detection.sampling import balanced_sample, row_words, uniforms


def test_nine_anchors_at_each_cell_of_a_map_of_60_by_40() -> None:
    anchors = AnchorGenerator()
    (found,) = anchors([(40, 60)], (640, 960))
    assert anchors.k == [9] and found.shape == (21600, 4)


def test_ratio_is_height_over_width_at_equal_area() -> None:
    (cell,) = (AnchorGenerator((64, 128), (0.5, 1.0, 2.0), rounded=False).cell(0),)
    w, h = (cell[:, 2:] - cell[:, :2]).T
    assert torch.allclose(h / w, torch.tensor([0.5, 0.5, 1.0, 1.0, 2.0, 2.0]))
    assert torch.allclose(w * h, torch.tensor([64.0, 128.0] * 3) ** 2)
    assert torch.allclose(cell[:, :2], -cell[:, 2:])


def test_numbers_of_torchvision() -> None:
    """torchvision 0.27, AnchorGenerator(((32, 64),), ((0.5, 1.0, 2.0),)).cell_anchors[0]."""
    want = [[-23, -11, 23, 11], [-45, -23, 45, 23], [-16, -16, 16, 16],
            [-32, -32, 32, 32], [-11, -23, 11, 23], [-23, -45, 23, 45]]  # fmt: skip
    assert AnchorGenerator((32, 64)).cell(0).tolist() == want


def test_cells_begin_at_whole_strides_row_by_row() -> None:
    (found,) = AnchorGenerator((8,), (1.0,))([(2, 3)], (32, 48))
    centres = (found[:, :2] + found[:, 2:]) / 2
    assert centres.tolist() == [[0, 0], [16, 0], [32, 0], [0, 16], [16, 16], [32, 16]]


def test_a_pyramid_has_sizes_of_its_own_at_each_map() -> None:
    anchors = AnchorGenerator(((8,), (16,)), (1.0,))
    fine, coarse = anchors([(4, 4), (2, 2)], (32, 32))
    assert (len(fine), len(coarse)) == (16, 4)
    assert float(coarse[0, 2]) == 2 * float(fine[0, 2])
    with pytest.raises(ValueError, match="1 feature maps and sizes of 2"):
        anchors([(4, 4)], (32, 32))


@pytest.mark.parametrize("sizes", [(8, (16,)), (0,), (-1, 4)])
def test_sizes_that_are_none(sizes: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="sizes"):
        AnchorGenerator(sizes)  # type: ignore[arg-type]


def test_positive_negative_ignored() -> None:
    table = torch.tensor([[0.70, 0.69, 0.30, 0.29, 0.0], [0.1, 0.2, 0.9, 0.0, 0.0]])
    assert AnchorMatcher()(table).tolist() == [0, IGNORED, 1, NEGATIVE, NEGATIVE]


def test_every_truth_keeps_its_best_boxes() -> None:
    table = torch.tensor([[0.2, 0.2, 0.1], [0.0, 0.0, 0.0]])
    assert AnchorMatcher()(table).tolist() == [0, 0, NEGATIVE]  # ties; an untouched truth has none
    assert AnchorMatcher(best=False)(table).tolist() == [NEGATIVE] * 3


def test_no_truth_makes_all_negative() -> None:
    assert AnchorMatcher()(torch.zeros(0, 4)).tolist() == [NEGATIVE] * 4
    assert AnchorMatcher()(torch.zeros(2, 0, 4)).shape == (2, 4)


def test_a_batch_is_its_pictures_one_by_one() -> None:
    generator = torch.Generator().manual_seed(0)
    low = torch.rand(3, 40, 2, generator=generator) * 50
    boxes = torch.cat([low, low + 5 + torch.rand(3, 40, 2, generator=generator) * 40], -1)
    truths, others = boxes[:, :4], boxes[0]
    table = iou(truths, others)
    table[1, 2:] = -1.0  # two of the second picture only fill up
    matcher = AnchorMatcher(0.5, 0.2)
    together = matcher(table)
    assert torch.equal(together[0], matcher(table[0]))
    assert torch.equal(together[1], matcher(table[1, :2]))


@pytest.mark.parametrize(("high", "low"), [(0.3, 0.7), (1.2, 0.3), (0.5, -0.1)])
def test_overlaps_that_are_none(high: float, low: float) -> None:
    with pytest.raises(ValueError, match="0 <= low <= high <= 1"):
        AnchorMatcher(high, low)


def test_a_balanced_sample_has_128_of_each_and_negatives_fill_up() -> None:
    labels = torch.zeros(3, 5000, dtype=torch.int64)
    labels[0, :300] = 1
    labels[1, :20] = 1
    labels[:, 4000:] = -1
    chosen = balanced_sample(labels, random_state=0)
    assert chosen.sum(1).tolist() == [256, 256, 256]
    assert (chosen & (labels == 1)).sum(1).tolist() == [128, 20, 0]
    assert not bool((chosen & (labels < 0)).any())


def test_few_boxes_are_all_taken() -> None:
    labels = torch.tensor([[1, 1, 0, -1]])
    assert balanced_sample(labels, 256, random_state=0).tolist() == [[True, True, True, False]]
    assert balanced_sample(torch.zeros(2, 0).long(), random_state=0).shape == (2, 0)
    assert balanced_sample(torch.tensor([[0, 0, 0]]), 2, 0.25, random_state=1).sum() == 2


def test_samples_are_fair() -> None:
    labels = torch.zeros(400, 10, dtype=torch.int64)
    share = balanced_sample(labels, 5, random_state=0).double().mean(0)
    assert bool(((share - 0.5).abs() < 4 * math.sqrt(0.25 / 400)).all())


def test_settings_that_are_none() -> None:
    with pytest.raises(ValueError, match="n is at least 1"):
        balanced_sample(torch.zeros(1, 3).long(), 0)


def test_the_same_row_draws_the_same_numbers_and_another_key_others() -> None:
    content = torch.tensor([7, 7, 8])
    words = row_words(content, 0)
    assert words[0] == words[1] and words[0] != words[2]
    assert torch.equal(row_words(content, 0), words)
    assert not torch.equal(row_words(content, 1), words)
    assert torch.equal(
        row_words(content, torch.tensor([5]))[:1], row_words(content[:1], torch.tensor([5]))
    )
    u = uniforms(words, 20_000)
    assert float(u.min()) >= 0 and float(u.max()) < 1
    assert abs(float(u[0].mean()) - 0.5) < 0.01 and abs(float(u[0].var()) - 1 / 12) < 0.002
    assert (
        abs(float(torch.corrcoef(torch.stack([u[0], uniforms(words, 20_000, 1)[0]]))[0, 1])) < 0.03
    )
