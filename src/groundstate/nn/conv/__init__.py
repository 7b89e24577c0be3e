"""Convolution arithmetic: sizes, receptive fields, matrices, pooling, up-sampling, fixed filters."""
