r"""Skips of a U-Net carry the detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from groundstate.compute.random import Key, seeded
from groundstate.experiments.base import Claim, Result, experiment
from groundstate.nn.zoo.unet import UNet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMA = 0.3


def widened(base: int) -> int:
    """Width of a network without skips with as many parameters as one with them."""
    with torch.device("meta"):  # counted, not drawn
        target = sum(p.numel() for p in UNet(1, 1, base, 2, up="resize").parameters())
        sizes = {b: sum(p.numel() for p in UNet(1, 1, b, 2, up="resize", skips=False).parameters())
                 for b in range(base, 2 * base)}  # fmt: skip
    return min(sizes, key=lambda b: abs(sizes[b] - target))


@experiment("GENX-unet", theme="generative", title="Skips carry the detail", slow=True)
def unet(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Digits of 8×8 with noise of 0.3 are denoised, :math:`\min_\theta E\|f_\theta(x+\sigma\epsilon)-x\|^2`,
    by a U-Net with skips and by one without, which is wider so that both have as many parameters. Without
    skips all detail has to pass the narrow middle, and the error is larger.
    """
    rng = Key.of(seed).fold("unet").numpy()
    X = torch.from_numpy((load_digits().images / 16).astype(np.float32))[:, None]
    order = torch.from_numpy(rng.permutation(len(X)))
    train, test = X[order[:1400]], X[order[1400:]]
    noise = torch.Generator().manual_seed(seed)
    noisy = test + SIGMA * torch.randn(test.shape, generator=noise)
    wide = widened(8)
    nets, errors, made, counts = {}, {}, {}, {}
    for name, base, skips in (("with skips", 8, True), ("without", wide, False)):
        with seeded(Key.of(seed).fold("net")):
            net = UNet(1, 1, base, 2, up="resize", skips=skips)
        counts[name] = sum(p.numel() for p in net.parameters())
        optimiser = torch.optim.Adam(net.parameters(), 3e-3)
        draws = torch.Generator().manual_seed(seed + 1)
        for _ in range(500):
            rows = train[torch.randint(len(train), (64,), generator=draws)]
            seen = rows + SIGMA * torch.randn(rows.shape, generator=draws)
            optimiser.zero_grad()
            (net(seen) - rows).square().mean().backward()
            optimiser.step()
        with torch.no_grad():
            made[name] = net(noisy)
        errors[name] = float((made[name] - test).square().mean())
        nets[name] = net
    ratio = errors["without"] / errors["with skips"]
    claims = [
        Claim.at_least("error without skips over that with them", ratio, 1.15),
        Claim.between("parameters without over with", counts["without"] / counts["with skips"], 0.9, 1.1),
        Claim.below("error with skips over that of the noisy row", errors["with skips"] / SIGMA**2, 0.35),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        axes: Any = figure.subplots(4, 8)
        rows = {"noisy": noisy, **made, "digit": test}
        for line, (name, images) in zip(axes, rows.items(), strict=True):
            for ax, image in zip(line, images[:8].numpy(), strict=True):
                ax.imshow(image[0], cmap="gray_r", vmin=0, vmax=1)
                ax.set(xticks=[], yticks=[])
            line[0].set_ylabel(name, fontsize=7)

    return Result(claims, {"mse": errors, "parameters": counts}, draw)
