"""Augmentation: random changes that keep the meaning, on the device of the batch."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.nn.augment.affine import Affine as Affine
    from groundstate.nn.augment.affine import move_boxes as move_boxes
    from groundstate.nn.augment.affine import move_images as move_images
    from groundstate.nn.augment.affine import move_masks as move_masks
    from groundstate.nn.augment.base import Each as Each
    from groundstate.nn.augment.base import Noise as Noise
    from groundstate.nn.augment.base import Transform as Transform
    from groundstate.nn.augment.colour import ColourJitter as ColourJitter
    from groundstate.nn.augment.colour import Cutout as Cutout
    from groundstate.nn.augment.mix import CutMix as CutMix
    from groundstate.nn.augment.mix import Mixup as Mixup
    from groundstate.nn.augment.mix import mixed_labels as mixed_labels
    from groundstate.nn.augment.moves import Crop as Crop
    from groundstate.nn.augment.moves import Flip as Flip
    from groundstate.nn.augment.moves import Rotate as Rotate
    from groundstate.nn.augment.moves import Shift as Shift
    from groundstate.nn.augment.pipeline import Augment as Augment
    from groundstate.nn.augment.pipeline import Views as Views
    from groundstate.nn.augment.presets import PRESETS as PRESETS
    from groundstate.nn.augment.presets import preset as preset
    from groundstate.nn.augment.tables import MaskColumns as MaskColumns
    from groundstate.nn.augment.tables import SwapNoise as SwapNoise

lazy(__name__)
