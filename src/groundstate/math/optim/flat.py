"""Parameters as one vector: a loss of named tensors becomes a function of a flat point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Params = Tensor | Mapping[str, Tensor]
Loss = Callable[..., Tensor]


class Flat:
    """The way between parameters (a tensor, or name to tensor) and one vector.

    >>> flat = Flat({"w": torch.ones(2, 2), "b": torch.zeros(2)})
    >>> flat.start.numel(), flat.shaped(flat.start)["w"].shape
    (6, torch.Size([2, 2]))
    """

    def __init__(self, params: Params) -> None:
        if isinstance(params, Tensor):
            self.names: list[str] | None = None
            parts = [params.detach()]
        else:
            self.names = list(params)
            parts = [p.detach() for p in params.values()]
        if not parts or not all(p.is_floating_point() for p in parts):
            raise ValueError("parameters must be floating tensors, at least one")
        self.shapes = [p.shape for p in parts]
        self.sizes = [p.numel() for p in parts]
        self.start = torch.cat([p.reshape(-1) for p in parts])

    def shaped(self, vector: Tensor) -> Any:
        """A flat vector as parameters."""
        parts = [v.reshape(s) for v, s in zip(vector.split(self.sizes), self.shapes, strict=True)]
        return parts[0] if self.names is None else dict(zip(self.names, parts, strict=True))

    def vector(self, params: Params) -> Tensor:
        """Parameters as a flat vector."""
        parts = [params] if isinstance(params, Tensor) else [params[n] for n in self.names or ()]
        return torch.cat([p.detach().reshape(-1) for p in parts]).to(self.start)

    def loss(self, loss: Loss, data: tuple[Any, ...]) -> Callable[[Tensor], Tensor]:
        """``loss(params, *data)`` as a function of a flat vector."""
        return lambda vector: loss(self.shaped(vector), *data)
