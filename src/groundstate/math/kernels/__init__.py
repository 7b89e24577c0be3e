"""Kernels: similarities that are inner products, with parameters on a log scale."""

from groundstate.math.kernels.algebra import Power, Product, Sum
from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.conditioning import Conditioned, condition, smooth
from groundstate.math.kernels.feature_maps import (
    FourierFeatures,
    Lift,
    PolynomialKernelMap,
    RBFTaylor,
    TaylorFeatures,
)
from groundstate.math.kernels.fields import sample_field, sample_path
from groundstate.math.kernels.foreign import Foreign
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.gram import Gram
from groundstate.math.kernels.objects import OnObjects
from groundstate.math.kernels.products import DotProduct, Linear, Polynomial, Sigmoid
from groundstate.math.kernels.sets import SetKernel, check_kernel
from groundstate.math.kernels.stationary import (
    RBF,
    Constant,
    Laplace,
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
    "Conditioned",
    "Constant",
    "DotProduct",
    "Foreign",
    "FourierFeatures",
    "Function",
    "Geometry",
    "Gram",
    "Kernel",
    "Laplace",
    "Laplacian",
    "Lift",
    "Linear",
    "Matern",
    "OnObjects",
    "Periodic",
    "Polynomial",
    "PolynomialKernelMap",
    "Power",
    "Precomputed",
    "Product",
    "RBFTaylor",
    "RationalQuadratic",
    "SetKernel",
    "Sigmoid",
    "Spectrum",
    "Sum",
    "TaylorFeatures",
    "White",
    "check_kernel",
    "check_psd",
    "condition",
    "sample_field",
    "sample_path",
    "smooth",
]
