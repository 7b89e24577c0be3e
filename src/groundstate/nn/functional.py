"""Functions of networks that torch does not have: convolution arithmetic."""

from groundstate.nn.conv.matrix import conv_matrix, im2col, true_convolve
from groundstate.nn.conv.sizes import (
    conv_output_size,
    conv_transpose_output_size,
    linear_to_conv,
    overlap_count,
)

__all__ = [
    "conv_matrix",
    "conv_output_size",
    "conv_transpose_output_size",
    "im2col",
    "linear_to_conv",
    "overlap_count",
    "true_convolve",
]
