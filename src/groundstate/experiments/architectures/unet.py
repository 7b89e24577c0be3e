r"""The skips of a U-Net carry where things end past the bottleneck."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from groundstate.compute.random import Key
from groundstate.data import make_shapes
from groundstate.energy import ClassEnergy, label_grid
from groundstate.evaluate.metrics import iou
from groundstate.experiments.architectures.pictures import built, drawn
from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import Rows
from groundstate.learn import NLL, Stochastic, fit
from groundstate.nn.zoo.unet import UNet

SIDE, TRAIN, TEST, EPOCHS = 48, 400, 100, 6


def scenes(n: int, key: Key) -> Rows:
    """Pictures about their own mean, and which pixels belong to a shape."""
    made = make_shapes(n, SIDE, (1, 3), random_state=key)
    x = torch.from_numpy(made.images)
    x = (x - x.mean((2, 3), keepdim=True)) / 0.2
    return {"x": x, "y": torch.from_numpy((made.semantic > 0).astype("int64"))}


def border(y: Tensor, reach: int = 1) -> Tensor:
    """Pixels that have one of the other kind within ``reach``, ``(n, H, W)``."""
    mask = y.float()[:, None]
    wide = max_pool2d(mask, 2 * reach + 1, 1, reach)
    narrow = -max_pool2d(-mask, 2 * reach + 1, 1, reach)
    return (wide != narrow)[:, 0]


@experiment("ARC-x-unet", theme="architectures", title="Skips sharpen boundaries", slow=True)
def unet(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Three poolings leave one number for 8 × 8 pixels, and the way up has to guess where a shape
    ends. A U-Net hands the maps before each pooling across, :math:`[\text{up}(h), h_\text{down}]`, so
    that the deep layers say what it is and the shallow ones where.

    400 scenes of 48 × 48 pixels with one to three shapes, ``UNet(base=8, depth=3)`` with skips and
    without, six epochs of Adam with rate 0.003; 100 new scenes. A quick run learns from 100 scenes.
    """
    key = Key.of(seed)
    train, test = scenes(100 if quick else TRAIN, key.fold("train")), scenes(TEST, key.fold("test"))
    edge = border(test["y"])
    overlap, sharp, weights, masks = {}, {}, {}, {}
    for name, skips in (("with skips", True), ("without", False)):
        net = drawn(built(UNet, 3, 2, 8, 3, skips=skips), key.fold("weights"))
        energy = ClassEnergy(net, (3, SIDE, SIDE), label_grid(2, SIDE, SIDE), normalise=True)
        solver = Stochastic(lr=0.003, batch_size=8, max_epochs=EPOCHS, tol=None)
        fit(energy, train, NLL(), solver, random_state=key.fold("order"))
        energy.eval()
        with torch.no_grad():
            found = energy.scores(test["x"]).argmax(-1)
        weights[name] = sum(p.numel() for p in net.parameters())
        overlap[name] = float(iou(test["y"], found, n_classes=2, pool="pooled")[1])
        sharp[name] = float((found == test["y"])[edge].double().mean())
        masks[name] = found
    claims = [
        Claim.at_least("foreground IoU with skips", overlap["with skips"], 0.9),
        Claim.above("foreground IoU: with skips less without",
                    overlap["with skips"] - overlap["without"], 0.05),
        Claim.above("accuracy at boundaries: with skips less without",
                    sharp["with skips"] - sharp["without"], 0.05),
    ]  # fmt: skip
    numbers = {"iou": overlap, "at boundaries": sharp, "weights": weights}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(3, 4)
        for i, row in enumerate(axes):
            for ax, (title, picture) in zip(row, _panels(test, masks, i), strict=True):
                ax.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                ax.set(title="" if i else title, xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(6.4, 5.0))


def _panels(test: Rows, masks: dict[str, Tensor], i: int) -> list[tuple[str, object]]:
    image = (0.2 * test["x"][i] + 0.5).clamp(0, 1).movedim(0, -1)
    found = [(name, mask[i].numpy()) for name, mask in masks.items()]
    return [("image", image.numpy()), ("mask", test["y"][i].numpy()), *found]
