r"""Invertible maps with known volume change, :math:`z = f(x)` and :math:`\log|\det\partial f/\partial x|`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError


class Transform(nn.Module):
    r"""The contract of an invertible map of rows ``(B, d)``, which may depend on a context.

    ``forward(x, context)`` gives :math:`z = f(x)` and the log-determinant
    :math:`\log|\det\partial f/\partial x|` ``(B,)``, called ladj; ``inverse(z, context)`` gives
    :math:`x = f^{-1}(z)` and the ladj of that map, minus the other. Maps go from data to base.
    """

    features: int
    context: int = 0

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        raise TypeError(f"{type(self).__name__} must define forward(x, context)")

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        raise TypeError(f"{type(self).__name__} must define inverse(z, context)")

    def initialise(self, x: Tensor, context: Tensor | None = None) -> None:
        """Set what depends on data (scales of ``ActNorm``) from a first batch; most maps have nothing."""


class Compose(Transform):
    r"""One map after another, :math:`f = f_K\circ\dots\circ f_1`; log-determinants add up.

    Parameters
    ----------
    transforms : the maps :math:`f_1, \dots, f_K`, all of the same number of features

    Examples
    --------
    >>> f = Compose([Inverse(Scale(torch.tensor([2.0, 4.0]))), Scale(torch.tensor([2.0, 2.0]))])
    >>> z, ladj = f(torch.tensor([[1.0, 2.0]]))
    >>> z.tolist(), round(ladj.item(), 4)  # log(1 * 1/2)
    ([[1.0, 1.0]], -0.6931)
    """

    def __init__(self, transforms: Iterable[Transform]) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(transforms)
        if not len(self.transforms):
            raise ValueError("a flow needs at least one transform, got none")
        sizes = {int(f.features) for f in self.transforms}  # type: ignore[arg-type]
        if len(sizes) > 1:
            raise ShapeError(f"all transforms must map the same number of features, got {sizes}")
        self.features = sizes.pop()
        self.context = max(int(f.context) for f in self.transforms)  # type: ignore[arg-type]

    def config(self) -> dict[str, Any]:
        return {"transforms": list(self.transforms)}

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = None
        for f in self.transforms:
            x, ladj = f(x, context if f.context else None)
            total = ladj if total is None else total + ladj
        assert total is not None
        return x, total

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = None
        for f in reversed(self.transforms):
            z, ladj = f.inverse(z, context if f.context else None)  # type: ignore[operator]
            total = ladj if total is None else total + ladj
        assert total is not None
        return z, total

    @torch.no_grad()
    def initialise(self, x: Tensor, context: Tensor | None = None) -> None:
        for f in self.transforms:
            given = context if f.context else None
            f.initialise(x, given)  # type: ignore[operator]
            x, _ = f(x, given)


class Inverse(Transform):
    """A map with its two directions exchanged.

    Parameters
    ----------
    transform : the map whose inverse this is

    Examples
    --------
    >>> Inverse(Scale(torch.tensor([2.0])))(torch.tensor([[1.0]]))[0].tolist()
    [[0.5]]
    """

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform = transform
        self.features, self.context = transform.features, transform.context

    def config(self) -> dict[str, Any]:
        return {"transform": self.transform}

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.transform.inverse(x, context)

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.transform(z, context)
        return out


class Scale(Transform):
    r"""Shift and scale of each coordinate, :math:`z = (x - b)e^{s}`, learned.

    Parameters
    ----------
    scale : the start of :math:`e^{s}`, ``(d,)``; a number of features d starts at one

    Examples
    --------
    >>> z, ladj = Scale(torch.tensor([2.0, 3.0]))(torch.ones(1, 2))
    >>> z.tolist(), round(ladj.item(), 4)
    ([[2.0, 3.0]], 1.7918)
    """

    def __init__(self, scale: int | Tensor) -> None:
        super().__init__()
        start = torch.ones(scale) if isinstance(scale, int) else scale
        self.features = start.shape[0]
        self.log_scale = nn.Parameter(start.detach().log().clone())
        self.shift = nn.Parameter(torch.zeros_like(start))

    def config(self) -> dict[str, Any]:
        return {"scale": self.features}

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        z = (x - self.shift) * self.log_scale.exp()
        return z, self.log_scale.sum().expand(x.shape[:-1])

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x = z * (-self.log_scale).exp() + self.shift
        return x, -self.log_scale.sum().expand(z.shape[:-1])


class ActNorm(Scale):
    r""":math:`z = (x - b)e^{s}` whose start gives a first batch mean 0 and variance 1.

    Parameters
    ----------
    scale : number of features
    repeat : consecutive features that share one b and s, as the pixels of a channel do

    Examples
    --------
    >>> f = ActNorm(1)
    >>> f.initialise(torch.tensor([[1.0], [5.0]]))
    >>> f(torch.tensor([[5.0]]))[0].tolist()
    [[1.0]]
    """

    def __init__(self, scale: int, repeat: int = 1) -> None:
        if scale % repeat:
            raise ShapeError(f"{scale} features are no multiple of repeat={repeat}")
        super().__init__(scale // repeat)
        self.features, self.repeat = scale, repeat

    def config(self) -> dict[str, Any]:
        return {"scale": self.features, "repeat": self.repeat}

    def _each(self, v: Tensor) -> Tensor:
        return v if self.repeat == 1 else v.repeat_interleave(self.repeat)

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        z = (x - self._each(self.shift)) * self._each(self.log_scale.exp())
        return z, (self.repeat * self.log_scale.sum()).expand(x.shape[:-1])

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x = z * self._each((-self.log_scale).exp()) + self._each(self.shift)
        return x, (-self.repeat * self.log_scale.sum()).expand(z.shape[:-1])

    @torch.no_grad()
    def initialise(self, x: Tensor, context: Tensor | None = None) -> None:
        rows = x.unflatten(-1, (-1, self.repeat)).movedim(-1, 0).flatten(0, -2)
        std = rows.std(0, correction=0)
        self.shift.copy_(rows.mean(0))
        # a coordinate that does not move has no scale of its own
        self.log_scale.copy_(torch.where(std > 1e-6, -std.clamp_min(1e-6).log(), 0.0))


class Permutation(Transform):
    r"""Coordinates in another order, :math:`z_i = x_{\pi(i)}`.

    Parameters
    ----------
    order : π

    Examples
    --------
    >>> Permutation([2, 0, 1])(torch.tensor([[1.0, 2.0, 3.0]]))[0].tolist()
    [[3.0, 1.0, 2.0]]
    """

    order: Tensor
    back: Tensor

    def __init__(self, order: Iterable[int]) -> None:
        super().__init__()
        order = torch.tensor(list(order), dtype=torch.int64)
        if sorted(order.tolist()) != list(range(len(order))):
            raise ValueError(
                f"order must be a permutation of 0..{len(order) - 1}, got {order.tolist()}"
            )
        self.features = len(order)
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("back", order.argsort(), persistent=False)

    def config(self) -> dict[str, Any]:
        return {"order": self.order.tolist()}

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return x.index_select(-1, self.order), x.new_zeros(x.shape[:-1])

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return z.index_select(-1, self.back), z.new_zeros(z.shape[:-1])
