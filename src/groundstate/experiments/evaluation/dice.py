r"""Dice and IoU rank alike; the Dice loss finds what is small; one pixel sets Hausdorff."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from groundstate.compute.random import Key, seeded
from groundstate.evaluate.metrics import dice as dice_score
from groundstate.evaluate.metrics import hausdorff, iou
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn.losses.overlap import dice as dice_loss
from groundstate.nn import init_

SIDE = 24
Mask = NDArray[np.bool_]


def scenes(key: Key, n: int) -> tuple[Tensor, Tensor]:
    """Noisy images with one small blob, about 1 % of the pixels, and its mask."""
    rng = key.numpy()
    centre = rng.uniform(4, SIDE - 4, (n, 2, 1, 1))
    grid = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"))
    mask = np.square(grid[None] - centre).sum(1) < 1.35**2
    image = mask * 1.5 + rng.standard_normal((n, SIDE, SIDE))
    return torch.tensor(image, dtype=torch.float32)[:, None], torch.tensor(mask)[:, None].float()


def train(
    loss: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor, key: Key, epochs: int
) -> nn.Module:
    """Two layers of convolutions, Adam, one loss."""
    with seeded(key.fold("layers")):  # layers draw weights from the shared stream when made
        net = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 3, padding=1))
    init_(net, "he", generator=key.fold("init").torch())
    order = key.fold("order").torch()
    steps = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=order).split(32):
            steps.zero_grad()
            loss(net(x[rows]), y[rows]).backward()
            steps.step()
    return net


def predicted(net: nn.Module, x: Tensor) -> Mask:
    """Pixels with p ≥ ½."""
    with torch.no_grad():
        return (net(x)[:, 0] >= 0).numpy()


@experiment(
    "EVA-X-dice", theme="evaluation", title="The Dice loss finds small foregrounds", slow=True
)
def dice(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\mathrm{Dice} = 2\,\mathrm{IoU}/(1 + \mathrm{IoU})`: one order, two scales. On a foreground
    of 1 % the cross-entropy is nearly content with "nothing there"; the Dice loss
    :math:`1 - 2\langle p, y\rangle/(|p|^2 + |y|^2)` counts the foreground alone. The Hausdorff
    distance :math:`\max\{\sup_a\inf_b|a-b|, \sup_b\inf_a|a-b|\}` is set by the one pixel that lies
    furthest off, which overlap hardly sees.

    500 pairs of random masks; two convolutions trained on 128 noisy images of 24 × 24 with both
    losses, two starts, judged on 128 others; a disc with and without one far pixel.
    """
    key = Key.of(seed)
    rng = key.fold("masks").numpy()
    share = rng.uniform(0.1, 0.9, (500, 1, 1))
    a = rng.random((500, 8, 8)) < share
    b = np.where(
        rng.random((500, 8, 8)) < rng.random((500, 1, 1)), a, rng.random((500, 8, 8)) < 0.5
    )
    both = np.array(
        [
            [iou(p[None], q[None], n_classes=2)[1], dice_score(p[None], q[None], n_classes=2)[1]]
            for p, q in zip(a.astype(np.int64), b.astype(np.int64))
        ]
    )
    identity = float(np.abs(both[:, 1] - 2 * both[:, 0] / (1 + both[:, 0])).max())
    rank = float(spearmanr(both[:, 0], both[:, 1]).statistic)

    x, y = scenes(key.fold("train"), 128)
    z, t = scenes(key.fold("test"), 128)
    losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "cross-entropy": binary_cross_entropy_with_logits,
        "Dice": lambda s, m: dice_loss(torch.sigmoid(s), m),
    }
    truth = t[:, 0].numpy().astype(np.int64)
    nets = {
        name: [train(loss, x, y, own, 20) for own in key.fold("nets").split(1 if quick else 2)]
        for name, loss in losses.items()
    }
    overlap = {
        name: [float(iou(truth, predicted(net, z).astype(np.int64), n_classes=2)[1]) for net in own]
        for name, own in nets.items()
    }
    mean = {name: float(np.mean(v)) for name, v in overlap.items()}

    grid = np.stack(np.meshgrid(np.arange(48), np.arange(48), indexing="ij"))
    disc: Mask = np.square(grid - np.array([24, 20])[:, None, None]).sum(0) < 14**2
    moved = np.roll(disc, 2, axis=1)
    flawed = moved.copy()
    flawed[24, 46] = True
    shift = [hausdorff(disc, other) for other in (moved, flawed)]
    cover = [
        float(iou(disc[None].astype(np.int64), o[None].astype(np.int64))[1])
        for o in (moved, flawed)
    ]
    claims = [
        Claim.at_most("largest |Dice − 2 IoU/(1 + IoU)|", identity, 1e-15),
        Claim.close("rank correlation of Dice and IoU", rank, 1.0, tol=1e-12),
        Claim.close("foreground, share of pixels", float(y.mean()), 0.01, tol=0.003),
        Claim.at_least(
            "IoU trained by Dice less that by cross-entropy",
            mean["Dice"] - mean["cross-entropy"],
            0.05,
        ),
        Claim.above("one far pixel: Hausdorff over that before", shift[1] / shift[0], 3.0),
        Claim.below("one far pixel: fall of the IoU", cover[0] - cover[1], 0.005),
    ]
    numbers = {
        "IoU": overlap,
        "foreground": float(y.mean()),
        "Hausdorff": shift,
        "IoU of the disc": cover,
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 5)
        axes[0].scatter(both[:, 0], both[:, 1], s=4, color=COLOURS[0])
        axes[0].set(xlabel="IoU", ylabel="Dice", aspect="equal")
        shown = (z[0, 0].numpy(), truth[0], *(predicted(own[0], z[:1])[0] for own in nets.values()))
        tile = np.block([[shown[0] / 4 + 0.3, shown[1]], [shown[2], shown[3]]])
        axes[1].imshow(tile, cmap="gray", vmin=0, vmax=1)
        axes[1].set(xticks=[], yticks=[], title="image, truth;\ncross-entropy, Dice")
        axes[2].bar(list(mean), list(mean.values()), color=COLOURS[:2])
        axes[2].set(ylabel="IoU", title=f"foreground {float(y.mean()):.1%}")
        for ax, other, value in zip(axes[3:], (moved, flawed), shift):
            ax.contour(disc, [0.5], colors=COLOURS[0])
            ax.contour(other, [0.5], colors=COLOURS[1])
            ax.set(title=f"Hausdorff {value:.1f}", xticks=[], yticks=[], aspect="equal")
        axes[4].plot([34, 46], [24, 24], color=COLOURS[4], linewidth=1.5)
        axes[3].plot([34, 36], [24, 24], color=COLOURS[4], linewidth=1.5)

    return Result(claims, numbers, draw, size=(14.0, 3.0))
