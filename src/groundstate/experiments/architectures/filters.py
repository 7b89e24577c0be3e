r"""Low-pass smooths, high-pass shows edges."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.models.vision.filters import butterworth

SIDE, CUTOFFS, ORDER, NOISE = 96, (0.02, 0.08, 0.16), 3, 0.2


def scene() -> tuple[Tensor, Tensor]:
    """A disc and a bar, and which pixels lie within two of an edge."""
    r = torch.arange(SIDE, dtype=torch.float64)
    y, x = torch.meshgrid(r, r, indexing="ij")
    disc = torch.hypot(y - 36, x - 32) - 20
    bar = torch.maximum((y - 68).abs() - 10, (x - 60).abs() - 26)
    image = ((disc < 0) | (bar < 0)).double()
    edge = torch.minimum(disc.abs(), torch.where(bar.abs() < 2, bar.abs(), 99)) < 2
    return image, edge


@experiment("ARC-x-filters", theme="architectures", title="Low-pass smooths, high-pass shows edges")
def filters(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The Butterworth filter :math:`H(f) = 1/(1+(\|f\|/c)^{2n})` keeps changes slower than c, and
    :math:`1-H` the others. White noise has equal power at all frequencies, so a lower cutoff leaves less
    of it; edges hold all frequencies, so they are what high-pass shows. Both halves add up to the
    image.

    A disc and a bar of 96 × 96 pixels with noise 0.2; order 3, cutoffs 0.02, 0.08 and 0.16.
    """
    image, edge = scene()
    g = Key.of(seed).torch()
    noise = NOISE * torch.randn(SIDE, SIDE, generator=g, dtype=torch.float64)
    shown = image + noise
    low = {c: butterworth(shown, c, ORDER, high_pass=False) for c in CUTOFFS}
    high = {c: butterworth(shown, c, ORDER, high_pass=True) for c in CUTOFFS}
    left = [float(butterworth(noise, c, ORDER, high_pass=False).var()) for c in CUTOFFS]
    apart = max(float((low[c] + high[c] - shown).abs().max()) for c in CUTOFFS)
    strength = butterworth(image, 0.08, ORDER).square()
    contrast = float(strength[edge].mean() / strength[~edge].mean())
    raw = float(noise.var())
    claims = [
        Claim.below("noise left at 0.02 over that at 0.08", left[0] / left[1], 1),
        Claim.below("noise left at 0.08 over that at 0.16", left[1] / left[2], 1),
        Claim.below("noise left at 0.16 over all of it", left[2] / raw, 0.3),
        Claim.at_most("low + high less the image, largest", apart, 1e-6),
        Claim.above("high-pass of the scene: power at edges over elsewhere", contrast, 5),
    ]
    numbers = {"noise left": left, "noise": raw, "contrast": contrast}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 3)
        for j, c in enumerate(CUTOFFS):
            for i, part in enumerate((low[c], high[c])):
                axes[i, j].imshow(part.numpy(), cmap="gray", rasterized=True)
                axes[i, j].set(title=f"{('low', 'high')[i]}, {c}", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(7.0, 5.0))
