"""The loss of masks: what counts, what does not, and its gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from groundstate.energy import ClassEnergy, LinearEnergy, label_grid
from groundstate.errors import Unsupported
from groundstate.learn import losses
from groundstate.learn.rules.masks import MaskLoss

F64 = torch.float64


def energy_of(k: int = 3, shape: tuple[int, ...] = (4, 5)) -> ClassEnergy:
    conv = nn.Conv2d if len(shape) == 2 else nn.Conv3d
    net = conv(2, k, 3, padding=1)
    generator = torch.Generator().manual_seed(0)
    for p in net.parameters():
        p.data.normal_(generator=generator)
    return ClassEnergy(net, (2, *shape), label_grid(k, *shape), normalise=True, ignore=255).double()


def batch_of(shape: tuple[int, ...] = (4, 5), k: int = 3) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(3, 2, *shape, generator=generator, dtype=F64)
    y = torch.randint(k, (3, *shape), generator=generator)
    y[torch.rand(y.shape, generator=generator) < 0.3] = 255
    return {"x": x, "y": y}


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 2)])
def test_it_is_cross_entropy_and_dice_of_what_counts(shape: tuple[int, ...]) -> None:
    energy, batch = energy_of(shape=shape), batch_of(shape)
    s = energy.net(batch["x"])
    ce = torch.stack([
        cross_entropy(a[None], b[None], ignore_index=255) for a, b in zip(s, batch["y"], strict=True)
    ])  # fmt: skip
    dice = losses.dice(s.softmax(1), batch["y"], reduction="none", ignore_index=255)
    torch.testing.assert_close(MaskLoss("ce")(energy, batch).loss, ce)
    torch.testing.assert_close(MaskLoss("dice")(energy, batch).loss, dice)
    both = MaskLoss("ce+dice")(energy, batch)
    torch.testing.assert_close(both.loss, ce + dice)
    torch.testing.assert_close(both.positive - both.contrast, both.loss)


def test_weights_of_classes_and_bytes() -> None:
    energy, batch = energy_of(), batch_of()
    weight = torch.tensor([1.0, 5.0, 0.5], dtype=F64)
    s = energy.net(batch["x"])
    plain = cross_entropy(s, batch["y"], weight, ignore_index=255, reduction="none")
    counts = (batch["y"] != 255).sum((1, 2))
    found = MaskLoss("ce", weight)(energy, batch).loss
    torch.testing.assert_close(found, plain.sum((1, 2)) / counts)
    small = {"x": batch["x"], "y": batch["y"].to(torch.uint8)}
    torch.testing.assert_close(MaskLoss()(energy, small).loss, MaskLoss()(energy, batch).loss)


def test_ignored_pixels_have_no_gradient_and_a_row_of_them_no_loss() -> None:
    energy, batch = energy_of(), batch_of()
    batch["y"][1] = 255
    assert MaskLoss()(energy, batch).loss[1] == 0
    raw = torch.randn(3, 3, 4, 5, dtype=F64, requires_grad=True)
    table = ClassEnergy(Given(raw), (2, 4, 5), label_grid(3, 4, 5), normalise=True, ignore=255)
    MaskLoss()(table, batch).loss.sum().backward()
    assert raw.grad is not None and not raw.grad.movedim(1, -1)[batch["y"] == 255].any()
    assert raw.grad.movedim(1, -1)[batch["y"] != 255].any()


class Given(nn.Module):
    """A network that answers with one table."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores


def test_refusals() -> None:
    with pytest.raises(ValueError, match="one of ce, dice, ce\\+dice, got 'iou'"):
        MaskLoss("iou")
    with pytest.raises(Unsupported, match="needs labels y at positions"):
        MaskLoss().require(LinearEnergy(3, 4), {"x": torch.zeros(1, 3), "y": torch.zeros(1)})
