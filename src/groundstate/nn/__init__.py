"""Neural blocks and tools for networks: plain torch modules, nothing trains here."""

from groundstate.nn.blocks.activations import ACTIVATIONS, HIDDEN, Activation, Maxout, activation
from groundstate.nn.blocks.augment import Augment, Mixup
from groundstate.nn.blocks.contract import BlockReport, NotDifferentiable, check_block
from groundstate.nn.blocks.dropout import Dropout, resample_masks
from groundstate.nn.blocks.initialise import init_
from groundstate.nn.blocks.mlp import MLP, network
from groundstate.nn.blocks.noise import InputNoise, LabelNoise, WeightNoise, smooth_labels
from groundstate.nn.blocks.norms import norm, refit_norm
from groundstate.nn.blocks.pool import PoolHead
from groundstate.nn.blocks.residual import Residual, dense_branch
from groundstate.nn.blocks.whiten import Center, Standardize, Whiten
from groundstate.nn.heads.base import DistributionHead, Head
from groundstate.nn.heads.multi import MultiHead
from groundstate.nn.heads.normal import NormalHead
from groundstate.nn.inspect.draw import Drawing, draw, draw_residual
from groundstate.nn.inspect.draw_graph import draw_backprop
from groundstate.nn.inspect.draw_norm import draw_norm
from groundstate.nn.inspect.summary import Summary, summary
from groundstate.nn.inspect.trace import trace
from groundstate.nn.piecewise import construct
from groundstate.nn.piecewise.collapse import collapse_linear
from groundstate.nn.piecewise.lift import DiscLift, floor_ceil
from groundstate.nn.piecewise.regions import (
    LinearRegions,
    RegionBounds,
    linear_regions,
    region_bounds,
)

__all__ = [
    "ACTIVATIONS",
    "HIDDEN",
    "MLP",
    "Activation",
    "BlockReport",
    "Center",
    "DiscLift",
    "DistributionHead",
    "Drawing",
    "Dropout",
    "Head",
    "LinearRegions",
    "Maxout",
    "MultiHead",
    "NormalHead",
    "NotDifferentiable",
    "PoolHead",
    "RegionBounds",
    "Residual",
    "Standardize",
    "Summary",
    "Whiten",
    "activation",
    "check_block",
    "collapse_linear",
    "construct",
    "dense_branch",
    "draw",
    "draw_backprop",
    "draw_norm",
    "draw_residual",
    "floor_ceil",
    "init_",
    "linear_regions",
    "network",
    "norm",
    "refit_norm",
    "region_bounds",
    "resample_masks",
    "summary",
    "trace",
    "Augment",
    "InputNoise",
    "LabelNoise",
    "Mixup",
    "WeightNoise",
    "smooth_labels",
]
