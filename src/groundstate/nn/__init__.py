"""Neural blocks and tools for networks: plain torch modules, nothing trains here."""

from groundstate.nn import construct
from groundstate.nn.activations import ACTIVATIONS, HIDDEN, Activation, Maxout, activation
from groundstate.nn.augment import Augment, Mixup
from groundstate.nn.collapse import collapse_linear
from groundstate.nn.contract import BlockReport, NotDifferentiable, check_block
from groundstate.nn.draw import Drawing, draw, draw_residual
from groundstate.nn.draw_graph import draw_backprop
from groundstate.nn.draw_norm import draw_norm
from groundstate.nn.dropout import Dropout, resample_masks
from groundstate.nn.heads import DistributionHead, Head
from groundstate.nn.heads_multi import MultiHead
from groundstate.nn.heads_normal import NormalHead
from groundstate.nn.initialise import init_
from groundstate.nn.lift import DiscLift, floor_ceil
from groundstate.nn.mlp import MLP, network
from groundstate.nn.noise import InputNoise, LabelNoise, WeightNoise, smooth_labels
from groundstate.nn.norms import norm, refit_norm
from groundstate.nn.pool import PoolHead
from groundstate.nn.regions import LinearRegions, RegionBounds, linear_regions, region_bounds
from groundstate.nn.residual import Residual, dense_branch
from groundstate.nn.summary import Summary, summary
from groundstate.nn.trace import trace
from groundstate.nn.whiten import Center, Standardize, Whiten

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
