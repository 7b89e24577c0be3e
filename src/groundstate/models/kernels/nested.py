"""Parameters of a kernel as parameters of the model that has it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Self

from groundstate.math.kernels import RBF, Kernel, Matern, RationalQuadratic
from groundstate.models.base import EnergyEstimator


class NestedKernel(EnergyEstimator):
    """``kernel__length_scale`` is the length scale of ``kernel``, to read, set and search.

    A kernel is a value that never changes; setting a parameter puts another kernel in its place.
    """

    kernel: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; ``deep`` adds those of a kernel object, as ``kernel__name``."""
        found: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(found["kernel"], Kernel):
            found |= {f"kernel__{name}": v for name, v in parameters(found["kernel"]).items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of a kernel object by ``kernel__name``."""
        kernel = params.get("kernel", self.kernel)
        if isinstance(kernel, Kernel):
            nested = [name for name in params if name.startswith("kernel__")]
            for name in nested:
                kernel = changed(kernel, name.removeprefix("kernel__"), params.pop(name))
            if nested:
                params["kernel"] = kernel
        super().set_params(**params)
        return self


def parameters(kernel: Kernel) -> dict[str, Any]:
    """Parameters of a kernel, and of the kernels in it, by name.

    >>> from groundstate.math.kernels import Constant, Linear
    >>> sorted(parameters(Constant(2.0) + Linear()))
    ['k1', 'k1__constant_value', 'k1__constant_value_bounds', 'k2']
    """
    found: dict[str, Any] = {}
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        found[field.name] = value
        if isinstance(value, Kernel):
            found |= {f"{field.name}__{name}": v for name, v in parameters(value).items()}
    return found


def changed(kernel: Kernel, name: str, value: Any) -> Kernel:
    """The kernel with another parameter.

    >>> from groundstate.math.kernels import Constant, Linear
    >>> changed(Constant(2.0) + Linear(), "k1__constant_value", 3.0)
    Constant(constant_value=3) + Linear()
    """
    head, _, rest = name.partition("__")
    known = [field.name for field in fields(kernel)]
    inner = getattr(kernel, head, None)
    if head not in known or (rest and not isinstance(inner, Kernel)):
        raise ValueError(
            f"Invalid parameter {name!r} for kernel {kernel!r}; its parameters are "
            f"{', '.join(sorted(parameters(kernel))) or 'none'}"
        )
    return replace(kernel, **{head: changed(inner, rest, value) if rest else value})  # type: ignore[arg-type]


def by_column(kernel: Kernel, d: int) -> Kernel:
    """The kernel with a length scale of its own for each of d columns, where it has one to learn.

    >>> from groundstate.math.kernels import RBF, White
    >>> by_column(RBF(2.0) + White(0.1), 3)
    RBF(length_scale=[2, 2, 2]) + White(noise_level=0.1)
    >>> by_column(RBF(2.0, "fixed"), 3)
    RBF(length_scale=2)
    """
    if isinstance(kernel, RBF | Matern | RationalQuadratic):
        scale = kernel.length_scale
        if isinstance(scale, tuple) or kernel.length_scale_bounds == "fixed":
            return kernel
        return replace(kernel, length_scale=(scale,) * d)
    for field in fields(kernel):
        part = getattr(kernel, field.name)
        if isinstance(part, Kernel):
            kernel = changed(kernel, field.name, by_column(part, d))
    return kernel
