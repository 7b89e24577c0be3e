"""Kernels: similarities that are inner products, with parameters on a log scale."""

from groundstate.math.kernels.algebra import Power, Product, Sum
from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.foreign import Foreign
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.objects import OnObjects
from groundstate.math.kernels.products import DotProduct, Linear, Polynomial, Sigmoid
from groundstate.math.kernels.stationary import (
    RBF,
    Constant,
    Laplacian,
    Matern,
    Periodic,
    RationalQuadratic,
    White,
)
from groundstate.math.kernels.texts import BagOfWords, Spectrum, check_psd
from groundstate.math.kernels.wrapped import Function, Precomputed

__all__ = [
    "RBF",
    "BagOfWords",
    "Constant",
    "DotProduct",
    "Foreign",
    "Function",
    "Geometry",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "OnObjects",
    "Periodic",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Sigmoid",
    "Spectrum",
    "Sum",
    "White",
    "check_psd",
]
