"""Metrics and losses of masks: the numbers of the specification, ignored pixels, peers."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
from scipy.spatial.distance import directed_hausdorff

from groundstate.errors import DataError, ShapeError
from groundstate.evaluate import metrics
from groundstate.learn import losses

Y = np.array([[1] * 40 + [0] * 20 + [1] * 10 + [0] * 30])  # TP 40, FP 20, FN 10, TN 30
SAID = np.array([[1] * 60 + [0] * 40])


def test_numbers() -> None:
    assert metrics.iou(Y, SAID)[1] == pytest.approx(0.571429, abs=1e-6)
    assert metrics.dice(Y, SAID)[1] == pytest.approx(0.727273, abs=1e-6)
    assert metrics.pixel_accuracy(Y, SAID) == 0.7 == sk.accuracy_score(Y[0], SAID[0])
    a, b = [(0, 0), (1, 0), (0, 1)], [(0, 0), (3, 0)]
    assert metrics.hausdorff(a, b, directed=True) == 1 == directed_hausdorff(a, b)[0]
    assert metrics.hausdorff(b, a, directed=True) == 2 == directed_hausdorff(b, a)[0]
    assert metrics.hausdorff(a, b) == 2 == metrics.hausdorff(a, b, percentile=100)


def test_ignored_pixels_are_as_if_they_were_not_there() -> None:
    rng = np.random.default_rng(0)
    y, pred = rng.integers(3, size=(2, 4, 5, 6))
    hole = rng.random(y.shape) < 0.3
    masked = np.where(hole, 255, y)
    short = [(y[i][~hole[i]][None], pred[i][~hole[i]][None]) for i in range(4)]
    for metric in (metrics.iou, metrics.dice):
        each = np.mean([metric(*pair, n_classes=3) for pair in short], 0)
        np.testing.assert_allclose(metric(masked, pred, ignore_index=255, n_classes=3), each)
    right = (y == pred)[~hole].mean()
    assert metrics.pixel_accuracy(masked, pred, ignore_index=255) == pytest.approx(right)
    with pytest.raises(DataError, match="labels must be 0 to 2"):
        metrics.iou(masked, pred, n_classes=3)
    with pytest.raises(DataError, match="no pixel counts"):
        metrics.pixel_accuracy([[255]], [[0]], ignore_index=255)
    with pytest.raises(DataError, match="labels must be"):
        metrics.iou([[-1, 0]], [[0, 0]])


def test_arrays_and_tensors_agree() -> None:
    t = (torch.from_numpy(Y), torch.from_numpy(SAID))
    assert metrics.mean_iou(*t) == metrics.mean_iou(Y, SAID)
    assert metrics.pixel_accuracy(t[0].to(torch.uint8), SAID) == 0.7
    assert metrics.iou(Y.astype(bool), SAID.astype(bool))[1] == pytest.approx(4 / 7)
    assert metrics.dice(Y[:, ::-1], SAID[:, ::-1])[1] == pytest.approx(8 / 11)


def test_dice_loss_leaves_ignored_positions_out() -> None:
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(3, 4, 6, 5, generator=generator, dtype=torch.float64).softmax(1)
    y = torch.randint(4, (3, 6, 5), generator=generator)
    hole = torch.rand(y.shape, generator=generator) < 0.4
    for loss in (losses.dice, losses.jaccard):
        whole = loss(p, torch.where(hole, 255, y), reduction="none", ignore_index=255)
        for i in range(3):
            rest = loss(p[i][:, ~hole[i]][None], y[i][~hole[i]][None])
            assert whole[i].item() == pytest.approx(rest.item(), abs=1e-12)
    p.requires_grad_()
    losses.dice(p, torch.where(hole, 255, y), ignore_index=255).backward()
    assert p.grad is not None and not p.grad.movedim(1, -1)[hole].any()
    with pytest.raises(ShapeError, match="ignore_index=255 is a label"):
        losses.dice(p.detach(), p.detach().round(), ignore_index=255)


def test_dice_loss_is_one_less_the_metric_and_has_the_plain_form() -> None:
    y, said = torch.from_numpy(Y), torch.from_numpy(SAID)
    hot = torch.nn.functional.one_hot(said, 2).movedim(-1, 1).double()
    ours = losses.dice(hot, y, reduction="none")
    assert ours.item() == pytest.approx(1 - metrics.dice(Y, SAID).mean())
    soft = torch.tensor([[[0.5, 0.25, 0.0]]], dtype=torch.float64)
    target = torch.tensor([[[1.0, 0.0, 1.0]]], dtype=torch.float64)
    assert losses.dice(soft, target).item() == pytest.approx(1 - 1 / (0.3125 + 2))
    plain = losses.dice(soft, target, squared_pred=False).item()
    assert plain == pytest.approx(1 - 1 / (0.75 + 2))  # MONAI's default form
    soft.requires_grad_()
    for squared in (True, False):
        assert torch.autograd.gradcheck(
            lambda p, s=squared: losses.dice(p, target, squared_pred=s), soft
        )
