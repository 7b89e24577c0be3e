"""Kernels of scikit-learn as ours, so that code ports by changing one import."""

from __future__ import annotations

from typing import Any

from groundstate.math import kernels as k


def own_kernel(kernel: Any) -> k.Kernel:
    """Our twin of a kernel of ``sklearn.gaussian_process.kernels`` or of a function; ours as is.

    Other objects with the methods of scikit-learn's kernels are asked for their own values.
    """
    if isinstance(kernel, k.Kernel):
        return kernel
    name = type(kernel).__name__ if type(kernel).__module__.startswith("sklearn.") else ""
    if name in ("Sum", "Product"):
        left, right = own_kernel(kernel.k1), own_kernel(kernel.k2)
        return left + right if name == "Sum" else left * right
    if name == "Exponentiation":
        return own_kernel(kernel.kernel) ** kernel.exponent
    if name not in _LEAVES:
        if callable(kernel):
            return k.Foreign(kernel) if hasattr(kernel, "clone_with_theta") else k.Function(kernel)
        raise TypeError(
            "kernel must be of groundstate.math.kernels, of scikit-learn or a function of two arrays "
            f"of rows, got {type(kernel).__name__}"
        )
    make, names = _LEAVES[name]
    made: k.Kernel = make(**{n: getattr(kernel, n) for n in names})
    return made


_LEAVES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "RBF": (k.RBF, ("length_scale", "length_scale_bounds")),
    "Matern": (k.Matern, ("length_scale", "length_scale_bounds", "nu")),
    "ConstantKernel": (k.Constant, ("constant_value", "constant_value_bounds")),
    "WhiteKernel": (k.White, ("noise_level", "noise_level_bounds")),
    "DotProduct": (k.DotProduct, ("sigma_0", "sigma_0_bounds")),
    "RationalQuadratic": (
        k.RationalQuadratic,
        ("length_scale", "alpha", "length_scale_bounds", "alpha_bounds"),
    ),
    "ExpSineSquared": (
        k.Periodic,
        ("length_scale", "periodicity", "length_scale_bounds", "periodicity_bounds"),
    ),
}
