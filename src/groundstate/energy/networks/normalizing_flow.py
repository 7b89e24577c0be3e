r"""Densities by change of variables, :math:`e(x) = -\log p_z(f(x)) - \log|\det\partial f/\partial x|`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.flows import FLOWS, Continuous, Flow


def _example() -> NormalizingFlowEnergy:
    options = {"n_transforms": 1, "hidden_layer_sizes": (4,), "activation": "tanh"}
    energy = NormalizingFlowEnergy(2, "maf", 1, options)
    g = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in energy.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=g))
    return energy


@registered(r"e(x) = -\log p_z(f(x)) - \log|\det\partial f/\partial x|", _example)
class NormalizingFlowEnergy(Energy):
    r"""Rows as an invertible map of a normal distribution,
    :math:`e(x, y) = -\log N(f(x; y); 0, I) - \log|\det\partial f/\partial x|`, so that :math:`Z = 1`.

    Parameters
    ----------
    features : d
    flow : a name of ``groundstate.nn.flows.FLOWS``, or a ``Flow`` of d features
    context : q, numbers y that the map depends on; 0 has no variable y
    options : of the named flow, such as ``n_transforms``
    shape : (C, H, W) of images that rows are flat forms of, for flows that know of images
    generator : source of the initial weights

    Attributes
    ----------
    flow : Flow

    Examples
    --------
    >>> e = NormalizingFlowEnergy(2, "maf")  # the identity at the start
    >>> round(e(x=torch.zeros(1, 2)).item(), 4)  # log 2 pi
    1.8379
    >>> e.ancestral(3)["x"].shape
    torch.Size([3, 2])
    """

    normalised = frozenset({"x"})
    context = ("noise",)  # pairs of base points and rows, as a rectified flow learns from

    def __init__(
        self,
        features: int,
        flow: str | Flow = "nsf",
        context: int = 0,
        options: Mapping[str, Any] | None = None,
        shape: tuple[int, ...] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        spaces = {"x": Real(features)} | ({"y": Real(context)} if context else {})
        super().__init__(**spaces)
        self.features, self.context_size = features, context
        self.options, self.shape = dict(options or {}), None if shape is None else tuple(shape)
        self.name = flow if isinstance(flow, str) else None
        if isinstance(flow, str):
            if flow not in FLOWS:
                raise ValueError(f"flow must be one of {', '.join(FLOWS)}, got {flow!r}")
            if self.shape is not None and math.prod(self.shape) != features:
                raise ShapeError(
                    f"images {self.shape} have {math.prod(self.shape)} numbers, not {features}"
                )
            size = features if self.shape is None else self.shape
            flow = FLOWS[flow](size, context, generator=generator, **self.options)
        elif (flow.features, flow.context) != (features, context):
            raise ShapeError(
                f"the flow maps {flow.features} features with {flow.context} numbers of context, the "
                f"rows have {features} and {context}; make it with these"
            )
        self.flow = flow

    def config(self) -> dict[str, Any]:
        return {
            "features": self.features, "flow": self.flow if self.name is None else self.name,
            "context": self.context_size, "options": self.options,
            "shape": None if self.shape is None else list(self.shape),
        }  # fmt: skip

    @property
    def velocity(self) -> nn.Module | None:
        """The field of a continuous flow, None for other flows."""
        step = self.continuous
        return None if step is None else step.velocity

    @property
    def continuous(self) -> Continuous | None:
        """The one map of a continuous flow, None for other flows."""
        steps = self.flow.transform.transforms
        return steps[0] if len(steps) == 1 and isinstance(steps[0], Continuous) else None

    def forward(self, x: Tensor, y: Tensor | None = None, noise: Tensor | None = None) -> Tensor:
        return -self.flow.log_prob(x, self._context(x, y))

    def _context(self, x: Tensor, y: Tensor | None) -> Tensor | None:
        # zeros are an unknown label
        return x.new_zeros(len(x), self.context_size) if y is None and self.context_size else y

    @torch.no_grad()
    def draw(
        self,
        n: int,
        y: Tensor | None = None,
        T: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """n independent draws x ``(n, d)`` and the points z of the base behind them; with y ``(n, q)`` one
        of each.

        At temperature T the base is :math:`N(0, TI)`: draws near the mode, for other T than 1 not those of
        the density to the power 1/T.
        """
        z: Tensor = self.flow.base.sample(n, T=T, generator=generator)
        return self.flow.inverse(z, self._context(z, y))[0], z

    @property
    def ancestral(self) -> Callable[..., dict[str, Tensor]] | None:
        """Exact draws of x at T = 1, for an energy of x alone."""
        return None if self.context_size else self._joint

    def _joint(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        if T != 1:
            raise Unsupported(f"draws of a flow are exact at T=1 only, got T={T}")
        return {"x": self.draw(n, generator=generator)[0]}

    @offers.log_partition("x")
    def total(self, T: float = 1.0, y: Tensor | None = None) -> Tensor:
        """0 at T = 1."""
        if T != 1:
            raise Unsupported(f"the normaliser of a flow is known at T=1 only, got T={T}")
        device, dtype = self.placement()
        return torch.zeros(1 if y is None else len(y), device=device, dtype=dtype)
