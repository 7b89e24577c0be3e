"""Neural blocks and tools for networks: plain torch modules, nothing trains here."""

from groundstate.nn import architectures, functional
from groundstate.nn.attention import masks
from groundstate.nn.attention.bert import BERT, MaskedBERT
from groundstate.nn.attention.block import AttentionBlock, FeedForward, TransformerBlock
from groundstate.nn.attention.cache import KVCache
from groundstate.nn.attention.flex import flex_attention
from groundstate.nn.attention.gpt import GPT
from groundstate.nn.attention.multi_head import MultiHeadAttention
from groundstate.nn.attention.positions import (
    ALiBi,
    LearnedPositions,
    RelativeBias,
    RoPE,
    SinusoidalPositions,
)
from groundstate.nn.attention.scores import attention_weights, dot_product_attention
from groundstate.nn.attention.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)
from groundstate.nn.augment import Augment, Mixup
from groundstate.nn.blocks.activations import ACTIVATIONS, HIDDEN, Activation, Maxout, activation
from groundstate.nn.blocks.contract import BlockReport, NotDifferentiable, check_block
from groundstate.nn.blocks.dropout import Dropout, resample_masks
from groundstate.nn.blocks.initialise import init_
from groundstate.nn.blocks.mlp import MLP, network
from groundstate.nn.blocks.noise import InputNoise, LabelNoise, WeightNoise, smooth_labels
from groundstate.nn.blocks.norms import norm, refit_norm
from groundstate.nn.blocks.pool import PoolHead
from groundstate.nn.blocks.residual import Residual, dense_branch, unravel
from groundstate.nn.blocks.simple import LinearBlock
from groundstate.nn.blocks.whiten import Center, Standardize, Whiten
from groundstate.nn.conv.channel_mlp import ChannelMLP
from groundstate.nn.conv.coder import ConvDecoder, ConvEncoder, conv_decoder, conv_encoder
from groundstate.nn.conv.pool import MinPool2d, Subsample
from groundstate.nn.conv.preact import PreActBlock
from groundstate.nn.conv.sizes import conv_output_size, conv_transpose_output_size, overlap_count
from groundstate.nn.conv.upsample import ResizeConv2d
from groundstate.nn.denoise import DiTDenoiser, LevelEmbedding, MLPDenoiser, UNetDenoiser
from groundstate.nn.detection.anchors import AnchorGenerator, AnchorMatcher
from groundstate.nn.detection.backbone import FeaturePyramid
from groundstate.nn.detection.fast_rcnn import FastRCNN
from groundstate.nn.detection.rcnn import FasterRCNN, MaskRCNN
from groundstate.nn.detection.region_cnn import RCNN
from groundstate.nn.detection.rpn import RPN
from groundstate.nn.detection.sampling import balanced_sample
from groundstate.nn.graph.convolutions import GATConv, GCNConv, GINConv, SAGEConv
from groundstate.nn.graph.edges import Edges
from groundstate.nn.graph.layers import GraphIndependent, GraphNetwork, MessagePassing
from groundstate.nn.heads.base import DistributionHead, Head
from groundstate.nn.heads.likelihoods import LIKELIHOODS, Likelihood, likelihood
from groundstate.nn.heads.multi import MultiHead
from groundstate.nn.heads.normal import NormalHead
from groundstate.nn.inspect.detectors import draw_detector, draw_fast_rcnn, draw_rcnn, draw_rpn
from groundstate.nn.inspect.draw import Drawing, draw, draw_residual
from groundstate.nn.inspect.draw_graph import draw_backprop
from groundstate.nn.inspect.draw_layers import draw_layers, draw_receptive_field
from groundstate.nn.inspect.draw_norm import draw_norm
from groundstate.nn.inspect.receptive import (
    ReceptiveField,
    empirical_receptive_field,
    receptive_field,
)
from groundstate.nn.inspect.summary import Summary, summary
from groundstate.nn.inspect.trace import trace
from groundstate.nn.inspect.transformers import draw_transformer
from groundstate.nn.inspect.unrolled import draw_cell, draw_gates, draw_unrolled
from groundstate.nn.piecewise import construct
from groundstate.nn.piecewise.collapse import collapse_linear
from groundstate.nn.piecewise.lift import DiscLift, floor_ceil
from groundstate.nn.piecewise.regions import (
    LinearRegions,
    RegionBounds,
    linear_regions,
    region_bounds,
)
from groundstate.nn.recurrent.bptt import BPTT
from groundstate.nn.recurrent.decoder import RecurrentDecoder
from groundstate.nn.recurrent.gates import gates
from groundstate.nn.recurrent.language import RecurrentLM
from groundstate.nn.recurrent.padding import bucketed, pack_rows, pad_batch, unpad
from groundstate.nn.recurrent.recurrent import Recurrent, Reverse
from groundstate.nn.recurrent.steps import StepScores
from groundstate.nn.recurrent.tcn import TCN
from groundstate.nn.seq2seq.reader import Translate
from groundstate.nn.seq2seq.recurrent import RecurrentSeq2Seq

__all__ = [
    "ConvDecoder",
    "ConvEncoder",
    "conv_decoder",
    "conv_encoder",
    "LIKELIHOODS",
    "Likelihood",
    "likelihood",
    "AnchorGenerator",
    "AnchorMatcher",
    "FastRCNN",
    "RCNN",
    "FasterRCNN",
    "FeaturePyramid",
    "MaskRCNN",
    "RPN",
    "balanced_sample",
    "Edges",
    "GATConv",
    "GCNConv",
    "GINConv",
    "GraphIndependent",
    "GraphNetwork",
    "MessagePassing",
    "SAGEConv",
    "BPTT",
    "Recurrent",
    "RecurrentDecoder",
    "RecurrentSeq2Seq",
    "StepScores",
    "draw_transformer",
    "Reverse",
    "Translate",
    "TCN",
    "bucketed",
    "pack_rows",
    "pad_batch",
    "unpad",
    "masks",
    "dot_product_attention",
    "AttentionBlock",
    "FeedForward",
    "TransformerBlock",
    "KVCache",
    "flex_attention",
    "BERT",
    "GPT",
    "MaskedBERT",
    "RecurrentLM",
    "MultiHeadAttention",
    "ALiBi",
    "LearnedPositions",
    "RelativeBias",
    "RoPE",
    "SinusoidalPositions",
    "attention_weights",
    "Transformer",
    "TransformerDecoder",
    "TransformerEncoder",
    "PreActBlock",
    "LinearBlock",
    "ACTIVATIONS",
    "HIDDEN",
    "MLP",
    "Activation",
    "BlockReport",
    "Center",
    "ChannelMLP",
    "DiscLift",
    "DistributionHead",
    "Drawing",
    "Dropout",
    "Head",
    "LinearRegions",
    "Maxout",
    "MinPool2d",
    "MultiHead",
    "NormalHead",
    "NotDifferentiable",
    "PoolHead",
    "ReceptiveField",
    "RegionBounds",
    "Residual",
    "ResizeConv2d",
    "Standardize",
    "Subsample",
    "Summary",
    "Whiten",
    "activation",
    "architectures",
    "check_block",
    "collapse_linear",
    "construct",
    "conv_output_size",
    "conv_transpose_output_size",
    "dense_branch",
    "draw",
    "draw_backprop",
    "draw_detector",
    "draw_fast_rcnn",
    "draw_rcnn",
    "draw_rpn",
    "draw_cell",
    "draw_gates",
    "draw_layers",
    "draw_norm",
    "draw_receptive_field",
    "draw_residual",
    "draw_unrolled",
    "empirical_receptive_field",
    "floor_ceil",
    "functional",
    "gates",
    "init_",
    "linear_regions",
    "network",
    "norm",
    "overlap_count",
    "refit_norm",
    "receptive_field",
    "region_bounds",
    "resample_masks",
    "summary",
    "trace",
    "unravel",
    "Augment",
    "InputNoise",
    "LabelNoise",
    "Mixup",
    "WeightNoise",
    "smooth_labels",
    "DiTDenoiser",
    "LevelEmbedding",
    "MLPDenoiser",
    "UNetDenoiser",
]
