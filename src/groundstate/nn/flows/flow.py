r"""A distribution as an invertible map of a simple one,
:math:`\log p(x) = \log p_z(f(x)) + \log|\det\partial f/\partial x|`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.math.distributions.operations import fresh
from groundstate.nn.flows.transform import Compose, Transform


class Base(Protocol):
    """What a flow maps data to."""

    def log_prob(self, z: Tensor) -> Tensor: ...

    def sample(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> Tensor: ...


class StandardNormal(nn.Module):
    r""":math:`N(0, I)` in d dimensions; at temperature T its draws have variance T.

    Parameters
    ----------
    features : d

    Examples
    --------
    >>> round(StandardNormal(2).log_prob(torch.zeros(1, 2)).item(), 4)
    -1.8379
    """

    where: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features
        self.register_buffer("where", torch.zeros(()))  # device and dtype, also when loaded

    def log_prob(self, z: Tensor) -> Tensor:
        return -0.5 * z.square().sum(-1) - 0.5 * self.features * math.log(2 * math.pi)

    def sample(self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
        generator = fresh(generator)
        # drawn where the generator lives: the same draws on every device
        z = torch.randn(
            n, self.features, generator=generator, device=generator.device, dtype=self.where.dtype
        )
        return z.to(self.where.device) * math.sqrt(T)


class Flow(nn.Module):
    r"""A density by change of variables,
    :math:`\log p(x) = \log p_z(f(x)) + \log|\det\partial f/\partial x|`.

    Parameters
    ----------
    transforms : the maps from data to base, in that order; or one
    base : distribution of z with ``log_prob(z)`` and ``sample(n, T, generator)``; None is
        :math:`N(0, I)`. A flow is one too

    Examples
    --------
    >>> from groundstate.nn.flows import Scale
    >>> flow = Flow([Scale(torch.tensor([0.5, 0.5]))])  # x has standard deviation 2
    >>> round(flow.log_prob(torch.zeros(1, 2)).item(), 4)  # -log(2 pi) - log 4
    -3.2242
    >>> flow.sample(5).shape
    torch.Size([5, 2])
    """

    def __init__(self, transforms: Transform | Iterable[Transform], base: Any = None) -> None:
        super().__init__()
        self.transform = Compose([transforms] if isinstance(transforms, Transform) else transforms)
        self.features, self.context = self.transform.features, self.transform.context
        self.base: Any = StandardNormal(self.features) if base is None else base

    def config(self) -> dict[str, Any]:
        return {"transforms": list(self.transform.transforms), "base": self.base}

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """z ``(B, d)`` and :math:`\\log|\\det\\partial z/\\partial x|` ``(B,)``."""
        out: tuple[Tensor, Tensor] = self.transform(self._checked(x, context), context)
        return out

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x ``(B, d)`` and :math:`\\log|\\det\\partial x/\\partial z|` ``(B,)``."""
        return self.transform.inverse(self._checked(z, context), context)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Exact log-density, ``(B,)``."""
        z, ladj = self(x, context)
        inside: Tensor = self.base.log_prob(z)
        return inside + ladj

    def sample(
        self,
        n: int,
        context: Tensor | None = None,
        *,
        T: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """n draws; with a context one for each of its n rows."""
        return self.inverse(self.base.sample(n, T=T, generator=generator), context)[0]

    def initialise(self, x: Tensor, context: Tensor | None = None) -> None:
        """Set what depends on data (scales of ``ActNorm``) from a batch of rows."""
        self.transform.initialise(self._checked(x, context), context)

    def _checked(self, x: Tensor, context: Tensor | None) -> Tensor:
        if x.ndim != 2 or x.shape[1] != self.features:
            raise ShapeError(f"this flow maps rows (B, {self.features}), got {tuple(x.shape)}")
        found = 0 if context is None else context.shape[-1]
        if found != self.context:
            raise ShapeError(
                f"this flow has a context of {self.context} numbers, got {found}"
                + ("" if self.context else "; make it with context=... to condition it")
            )
        return x
