r"""A matrix turns, stretches and turns; a photograph needs few terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import linalg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT, WIDTH = 450, 333
RANKS = (1, 5, 20, 50)
MAP = np.array([[1.0, 1.0], [0.0, 1.0]])


def photograph(rng: np.random.Generator) -> Any:
    """A grey scene: sky, sun, hills, a house with windows, and grain."""
    y, x = np.mgrid[0:1:HEIGHT * 1j, 0:1:WIDTH * 1j]  # fmt: skip
    scene = 0.85 - 0.35 * y
    scene += 0.5 * np.exp(-((x - 0.75) ** 2 + (y - 0.18) ** 2) / 0.006)
    for base, height in ((0.55, 0.08), (0.65, 0.12)):
        waves = sum(
            a * np.sin(2 * np.pi * f * x + p)
            for a, f, p in zip((0.5, 0.3, 0.2), rng.uniform(0.7, 4.0, 3), rng.uniform(0, 6.3, 3))
        )
        scene = np.where(y > base + height * waves, 0.45 - 0.3 * (y - base) + 0.1 * waves, scene)
    house = (x > 0.2) & (x < 0.55) & (y > 0.55) & (y < 0.88)
    scene = np.where(house, 0.75, scene)
    roof = (y > 0.4) & (y < 0.55) & (np.abs(x - 0.375) < (y - 0.4) * 1.4)
    scene = np.where(roof, 0.25, scene)
    panes = house & (np.sin(36 * x) > 0.3) & (np.sin(30 * y) > 0.2)
    scene = np.where(panes, 0.1, scene)
    return np.clip(scene + 0.02 * rng.normal(size=scene.shape), 0, 1)


@experiment("MAT-x-image", theme="mathematics", title="A photograph needs few singular values")
def image(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`A = U\Sigma V^\top` turns, stretches along the axes and turns again; the circle becomes an
    ellipse with the singular values as semi-axes. A picture is a matrix too:
    :math:`\sum_{i\le k}s_iu_iv_i^\top` stores :math:`k(1 + m + n)` numbers and errs by
    :math:`\sqrt{\sum_{i>k}s_i^2}`.

    The shear [[1, 1], [0, 1]]; a drawn scene with grain of 450 × 333 grey values, k = 1, 5, 20, 50.
    """
    picture = photograph(Key.of(seed).fold("scene").numpy())
    U, s, Vh = np.linalg.svd(MAP)
    t = np.linspace(0, 2 * np.pi, 4001)
    circle = np.stack([np.cos(t), np.sin(t)])
    panels = [circle, Vh @ circle, s[:, None] * (Vh @ circle), U @ (s[:, None] * (Vh @ circle))]
    composed = float(np.abs(panels[-1] - MAP @ circle).max())
    radii = np.linalg.norm(panels[-1], axis=0)
    shown = {k: linalg.compress_image(picture, k) for k in RANKS}
    values = np.linalg.svd(picture, compute_uv=False)
    tails = {k: float(np.sqrt((values[k:] ** 2).sum())) for k in RANKS}
    every = sorted({*range(1, 334, 12), 333, *RANKS})
    curve = [float(np.sqrt((values[k:] ** 2).sum()) / np.linalg.norm(values)) for k in every]
    whole = linalg.compress_image(picture, WIDTH)
    even = max(k for k in range(1, WIDTH) if k * (1 + HEIGHT + WIDTH) <= picture.size)
    claims = [
        Claim.below("turn, stretch, turn composes to the map", composed, 1e-12),
        Claim.close("longest semi-axis", radii.max(), s[0], tol=1e-6),
        Claim.close("shortest semi-axis", radii.min(), s[1], tol=1e-6),
        Claim.close("s₁ of the shear", s[0], 1.6180339887, tol=1e-9),
        Claim.equal("numbers stored", [shown[k].storage for k in RANKS], [784, 3920, 15680, 39200]),
        Claim.equal("of", picture.size, 149850),
        Claim.close("share at k = 50", shown[50].share, 0.2616, tol=5e-5),
        Claim.equal("break-even rank", even, 191),
        Claim.below("errors against the tails, relative",
                    max(abs(shown[k].error / tails[k] - 1) for k in RANKS), 1e-10),
        Claim.below("relative error at k = 50", tails[50] / float(np.linalg.norm(picture)), 0.06),
        Claim.below("error at k = 333", float(whole.error), 1e-9),
    ]  # fmt: skip
    numbers = {"rank": every, "error": curve, "tails": list(tails.values()), "s": s.tolist()}

    def draw(figure: Figure) -> None:
        parts: Any = figure.subfigures(2, 1, height_ratios=[1, 1.4])
        top, bottom = parts
        names = ("circle", "turned: Vᵀ", "stretched: Σ", "turned: U")
        for ax, points, name in zip(top.subplots(1, 4), panels, names):
            ax.scatter(*points[:, ::40], c=t[::40], cmap="twilight", s=8)
            ax.set(title=name, xlim=(-2, 2), ylim=(-2, 2), aspect="equal", xticks=[], yticks=[])
        axes = bottom.subplots(1, 6)
        pictures = [("original", picture), *((f"k = {k}", shown[k].image) for k in RANKS)]
        for ax, (name, values_) in zip(axes, pictures):
            ax.imshow(values_, cmap="grey", vmin=0, vmax=1)
            ax.set(title=name, xticks=[], yticks=[])
        axes[-1].semilogy(every[:-1], curve[:-1], color=COLOURS[0])
        axes[-1].axvline(even, color=COLOURS[5], linestyle=":")
        axes[-1].set(title="relative error", xlabel="k")

    return Result(claims, numbers, draw, size=(11.0, 5.6))
