"""Augmentations of pictures by name."""

from __future__ import annotations

from groundstate.nn.augment.affine import Affine
from groundstate.nn.augment.colour import ColourJitter, Cutout
from groundstate.nn.augment.pipeline import Augment

PRESETS = ("none", "light", "scenes", "photo", "strong")


def preset(name: str) -> Augment | None:
    """An augmentation by name.

    ========  ===========================================================================
    none      nothing
    light     shifts of 6 %, turns of 8° and scales of 10 %: for every kind of picture
    scenes    shifts of 10 %, scales of a quarter, brightness, contrast and saturation changed by a fifth;
              nothing is turned, so that boxes stay tight
    photo     windows of at least 60 %, mirrored left and right, turned by 10°, colours changed: not
              for digits, letters and whatever else has a left and a right
    strong    photo with hidden patches, and half of the examples mixed with others
    ========  ===========================================================================

    >>> preset("light").label_preserving, preset("none") is None
    (True, True)
    """
    if name == "none":
        return None
    if name == "light":
        return Augment([Affine(shift=0.06, rotate=8.0, scale=(0.9, 1.1))])
    if name == "scenes":
        moves = Affine(shift=0.1, scale=(0.8, 1.25), fill="mean")
        return Augment([moves, ColourJitter(0.2, 0.2, 0.2)])
    photo = [
        Affine(flip=0.5, crop=(0.6, 1.0), rotate=10.0, scale=(0.9, 1.1), fill="reflection"),
        ColourJitter(0.2, 0.2, 0.2, 0.02),
    ]
    if name == "photo":
        return Augment(photo)
    if name == "strong":
        return Augment([*photo, Cutout(0.3)], mixup=0.2, cutmix=1.0)
    raise ValueError(f"augment is one of {', '.join(PRESETS)}, or an Augment; got {name!r}")
