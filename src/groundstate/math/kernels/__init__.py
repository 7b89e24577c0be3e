"""Kernels: similarities that are inner products, with parameters on a log scale."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.kernels.algebra import Power as Power
    from groundstate.math.kernels.algebra import Product as Product
    from groundstate.math.kernels.algebra import Sum as Sum
    from groundstate.math.kernels.base import Kernel as Kernel
    from groundstate.math.kernels.conditioning import Conditioned as Conditioned
    from groundstate.math.kernels.conditioning import condition as condition
    from groundstate.math.kernels.conditioning import smooth as smooth
    from groundstate.math.kernels.feature_maps import FourierFeatures as FourierFeatures
    from groundstate.math.kernels.feature_maps import Lift as Lift
    from groundstate.math.kernels.feature_maps import PolynomialKernelMap as PolynomialKernelMap
    from groundstate.math.kernels.feature_maps import RBFTaylor as RBFTaylor
    from groundstate.math.kernels.feature_maps import TaylorFeatures as TaylorFeatures
    from groundstate.math.kernels.fields import sample_field as sample_field
    from groundstate.math.kernels.fields import sample_path as sample_path
    from groundstate.math.kernels.foreign import Foreign as Foreign
    from groundstate.math.kernels.geometry import Geometry as Geometry
    from groundstate.math.kernels.gram import Gram as Gram
    from groundstate.math.kernels.objects import OnObjects as OnObjects
    from groundstate.math.kernels.products import DotProduct as DotProduct
    from groundstate.math.kernels.products import Linear as Linear
    from groundstate.math.kernels.products import Polynomial as Polynomial
    from groundstate.math.kernels.products import Sigmoid as Sigmoid
    from groundstate.math.kernels.sets import SetKernel as SetKernel
    from groundstate.math.kernels.sets import check_kernel as check_kernel
    from groundstate.math.kernels.stationary import RBF as RBF
    from groundstate.math.kernels.stationary import Constant as Constant
    from groundstate.math.kernels.stationary import Laplace as Laplace
    from groundstate.math.kernels.stationary import Laplacian as Laplacian
    from groundstate.math.kernels.stationary import Matern as Matern
    from groundstate.math.kernels.stationary import Periodic as Periodic
    from groundstate.math.kernels.stationary import RationalQuadratic as RationalQuadratic
    from groundstate.math.kernels.stationary import White as White
    from groundstate.math.kernels.texts import BagOfWords as BagOfWords
    from groundstate.math.kernels.texts import Spectrum as Spectrum
    from groundstate.math.kernels.texts import check_psd as check_psd
    from groundstate.math.kernels.wrapped import Function as Function
    from groundstate.math.kernels.wrapped import Precomputed as Precomputed

lazy(__name__)
