"""Augmentation of pictures: ``groundstate.nn.augment`` under the name of its subject."""

from groundstate.nn.augment import PRESETS as PRESETS
from groundstate.nn.augment import Affine as Affine
from groundstate.nn.augment import Augment as Augment
from groundstate.nn.augment import ColourJitter as ColourJitter
from groundstate.nn.augment import Crop as Crop
from groundstate.nn.augment import CutMix as CutMix
from groundstate.nn.augment import Cutout as Cutout
from groundstate.nn.augment import Flip as Flip
from groundstate.nn.augment import Mixup as Mixup
from groundstate.nn.augment import Noise as Noise
from groundstate.nn.augment import Rotate as Rotate
from groundstate.nn.augment import Shift as Shift
from groundstate.nn.augment import Views as Views
from groundstate.nn.augment import mixed_labels as mixed_labels
from groundstate.nn.augment import move_boxes as move_boxes
from groundstate.nn.augment import move_images as move_images
from groundstate.nn.augment import move_masks as move_masks
from groundstate.nn.augment import preset as preset
