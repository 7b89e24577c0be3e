r"""Flows of the literature by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from groundstate.nn.flows.autoregressive import Autoregressive
from groundstate.nn.flows.continuous import Continuous, Velocity
from groundstate.nn.flows.coupling import Coupling
from groundstate.nn.flows.flow import Flow
from groundstate.nn.flows.images import LinearLU, Multiscale
from groundstate.nn.flows.planar import Planar, Radial
from groundstate.nn.flows.transform import ActNorm, Inverse, Scale, Transform

Hidden = Sequence[int]


def _orders(features: int, n: int, masks: str, generator: torch.Generator) -> list[list[int]]:
    """Orders of the coordinates: forwards and backwards in turn, or at random."""
    if masks == "random":
        return [torch.randperm(features, generator=generator).tolist() for _ in range(n)]
    _check_masks(masks)
    ahead = list(range(features))
    return [ahead if k % 2 == 0 else ahead[::-1] for k in range(n)]


def _halves(features: int, n: int, masks: str, generator: torch.Generator) -> list[list[bool]]:
    """Which coordinates stay: every second one and the others in turn, or half of them at random."""
    if masks == "random":
        rows = [torch.randperm(features, generator=generator) for _ in range(n)]
        return [(row < (features + 1) // 2).tolist() for row in rows]
    _check_masks(masks)
    return [[(i + k) % 2 == 0 for i in range(features)] for k in range(n)]


def _check_masks(masks: str) -> None:
    if masks != "alternating":
        raise ValueError(f"masks must be 'alternating' or 'random', got {masks!r}")


def MAF(
    features: int, context: int = 0, n_transforms: int = 3, hidden_layer_sizes: Hidden = (64, 64),
    activation: str = "relu", masks: str = "alternating", *,
    generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""Masked autoregressive flow, :math:`z_i = x_ie^{s_i(x_{<i})} + t_i(x_{<i})`: densities in one pass,
    draws in d steps.

    >>> MAF(3).log_prob(torch.zeros(1, 3)).shape
    torch.Size([1])
    """
    return _autoregressive(
        features, "affine", context, n_transforms, hidden_layer_sizes, activation, masks, generator
    )


def IAF(
    features: int, context: int = 0, n_transforms: int = 3, hidden_layer_sizes: Hidden = (64, 64),
    activation: str = "relu", masks: str = "alternating", *,
    generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""Inverse autoregressive flow, :math:`x_i = z_ie^{s_i(z_{<i})} + t_i(z_{<i})`: draws in one pass,
    densities of other points in d steps.

    >>> IAF(3).sample(4).shape
    torch.Size([4, 3])
    """
    flow = MAF(
        features, context, n_transforms, hidden_layer_sizes, activation, masks, generator=generator
    )
    return Flow([Inverse(f) for f in flow.transform.transforms])  # type: ignore[arg-type]


def NSF(
    features: int, context: int = 0, n_transforms: int = 3, hidden_layer_sizes: Hidden = (64, 64),
    activation: str = "relu", masks: str = "alternating", bins: int = 8, bound: float = 5.0,
    coupling: bool = False, *, generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""Neural spline flow: rational-quadratic splines of ``bins`` pieces on :math:`[-B, B]`,
    autoregressive or, with ``coupling=True``, with both directions in one pass.

    >>> NSF(2, coupling=True).sample(4).shape
    torch.Size([4, 2])
    """
    make = _coupling if coupling else _autoregressive
    return make(
        features, "spline", context, n_transforms, hidden_layer_sizes, activation, masks, generator,
        bins=bins, bound=bound,
    )  # fmt: skip


def RealNVP(
    features: int, context: int = 0, n_transforms: int = 6, hidden_layer_sizes: Hidden = (64, 64),
    activation: str = "relu", masks: str = "alternating", *,
    generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""Affine couplings, :math:`z_b = x_b\odot e^{s(x_a)} + t(x_a)`.

    >>> RealNVP(2).sample(4).shape
    torch.Size([4, 2])
    """
    return _coupling(
        features, "affine", context, n_transforms, hidden_layer_sizes, activation, masks, generator
    )


def NICE(
    features: int, context: int = 0, n_transforms: int = 6, hidden_layer_sizes: Hidden = (64, 64),
    activation: str = "relu", masks: str = "alternating", *,
    generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""Additive couplings, :math:`z_b = x_b + t(x_a)`, which keep volume, and one scale of each coordinate
    at the end.

    >>> NICE(2).sample(4).shape
    torch.Size([4, 2])
    """
    flow = _coupling(
        features, "shift", context, n_transforms, hidden_layer_sizes, activation, masks, generator
    )
    return Flow([*flow.transform.transforms, Scale(features)])


def Glow(
    features: int | Sequence[int], context: int = 0, n_transforms: int = 4,
    hidden_layer_sizes: Hidden = (64, 64), activation: str = "relu", levels: int = 2, *,
    generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""Steps of ActNorm, a matrix in LU form and an affine coupling. For images, ``features=(C, H, W)``,
    the matrix mixes channels, the couplings are convolutions, and ``levels`` squeezes and splits stand
    between ``n_transforms`` steps each.

    >>> Glow(3).sample(4).shape, Glow((1, 4, 4), n_transforms=1).sample(4).shape
    (torch.Size([4, 3]), torch.Size([4, 16]))
    """
    generator = generator or torch.Generator().manual_seed(0)
    if not isinstance(features, int):
        hidden = max(hidden_layer_sizes, default=64)
        return Flow(
            Multiscale(features, levels, n_transforms, hidden, context, generator=generator)
        )
    halves = _halves(features, n_transforms, "alternating", generator)
    transforms: list[Transform] = []
    for mask in halves:
        transforms += [
            ActNorm(features), LinearLU(features),
            Coupling(features, "affine", context, hidden_layer_sizes, activation, mask,
                     generator=generator),
        ]  # fmt: skip
    return Flow(transforms)


def PlanarFlow(
    features: int, context: int = 0, n_transforms: int = 16, *,
    generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""Planar layers, :math:`x = z + \hat u\tanh(w^\top z + b)`, from base to data.

    >>> PlanarFlow(2).sample(4).shape
    torch.Size([4, 2])
    """
    generator = generator or torch.Generator().manual_seed(0)
    layers = [Planar(features, context, generator=generator) for _ in range(n_transforms)]
    return Flow([Inverse(layer) for layer in layers])


def RadialFlow(
    features: int, context: int = 0, n_transforms: int = 16, *,
    generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""Radial layers, :math:`x = z + \beta(z - c)/(\alpha + \|z - c\|)`, from base to data.

    >>> RadialFlow(2).sample(4).shape
    torch.Size([4, 2])
    """
    generator = generator or torch.Generator().manual_seed(0)
    layers = [Radial(features, context, generator=generator) for _ in range(n_transforms)]
    return Flow([Inverse(layer) for layer in layers])


def CNF(
    features: int, context: int = 0, hidden_layer_sizes: Hidden = (64, 64), activation: str = "silu",
    trace: str = "auto", method: str = "dopri5", n_steps: int = 20, rtol: float = 1e-5,
    atol: float = 1e-5, gradient: str = "backprop", *, generator: torch.Generator | None = None,
) -> Flow:  # fmt: skip
    r"""A continuous flow, :math:`\dot x = v(t, x)` from base at t = 0 to data at t = 1.

    >>> CNF(2, hidden_layer_sizes=(8,)).sample(4).shape
    torch.Size([4, 2])
    """
    field = Velocity(features, hidden_layer_sizes, activation, context, generator=generator)
    return Flow(Continuous(field, features, context, trace, method, n_steps, rtol, atol, gradient))


def _autoregressive(
    features: int, kind: str, context: int, n: int, hidden: Hidden, activation: str, masks: str,
    generator: torch.Generator | None, **spline: Any,
) -> Flow:  # fmt: skip
    generator = generator or torch.Generator().manual_seed(0)
    return Flow([
        Autoregressive(features, kind, context, hidden, activation, order, generator=generator, **spline)
        for order in _orders(features, n, masks, generator)
    ])  # fmt: skip


def _coupling(
    features: int, kind: str, context: int, n: int, hidden: Hidden, activation: str, masks: str,
    generator: torch.Generator | None, **spline: Any,
) -> Flow:  # fmt: skip
    generator = generator or torch.Generator().manual_seed(0)
    return Flow([
        Coupling(features, kind, context, hidden, activation, mask, generator=generator, **spline)
        for mask in _halves(features, n, masks, generator)
    ])  # fmt: skip


FLOWS: dict[str, Callable[..., Flow]] = {
    "nsf": NSF, "maf": MAF, "iaf": IAF, "realnvp": RealNVP, "nice": NICE, "glow": Glow,
    "cnf": CNF, "planar": PlanarFlow, "radial": RadialFlow,
}  # fmt: skip
