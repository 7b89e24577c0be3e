r"""A map that is remembered: rows :math:`x_j` with places :math:`y_j`, and the energy of one more.

The energy of a whole map is a function of its coordinates Y. Of one more row x at a place z, with the map held
fixed, it is the part in which they occur: minimising it over z places the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.neighbors.memory import Memory
from groundstate.energy.spaces import Real

CELLS = 2**22  # distances of one block of rows
STEPS, RATE, MOMENTUM = 250, 0.1, 0.8  # of a row that is placed


class MapEnergy(Energy):
    """Rows that are remembered with their coordinates.

    Parameters
    ----------
    d : number of features
    components : length of a place
    metric, p, VI, w, n : of the rows, see ``groundstate.energy.neighbors.memory.Memory``

    Attributes
    ----------
    memory : Memory
    Y : parameter ``(n, components)``
    """

    def __init__(self, d: int, components: int, **memory: Any) -> None:
        kept = Memory(d, 0, **memory)
        super().__init__(x=Real(d), z=Real(components))
        self.memory = kept
        self.Y = nn.Parameter(torch.zeros(len(kept.rows), components))

    def config(self) -> dict[str, Any]:
        config = self.memory.config()
        del config["n_neighbors"]
        return {**config, "components": self.Y.shape[1]}

    @property
    def components(self) -> int:
        return int(self.Y.shape[1])

    def remember(self, rows: Tensor, Y: Tensor, columns: Tensor | None = None) -> None:
        """Keep these rows at these places; of distances, the columns that are theirs too."""
        self.keep(rows, columns)
        self.Y = nn.Parameter(Y.detach().to(rows.dtype).clone())

    def keep(self, rows: Tensor, columns: Tensor | None) -> None:
        """Keep these rows."""
        self.memory.keep(rows, None)
        if self.memory.metric == "precomputed" and columns is not None:
            self.memory.column = columns

    def away(self, x: Tensor) -> Tensor:
        """Distances to the remembered rows ``(B, n)``, twice differentiable in x."""
        if x.requires_grad and torch.is_grad_enabled():  # cdist has no second derivative
            every = torch.arange(len(self.memory.rows), device=x.device)
            return self.memory.measured(x, every.expand(len(x), -1)).to(x.dtype)
        return self.memory.every(x).to(x.dtype)

    def place(self, x: Tensor) -> Tensor:
        """Places ``(B, components)`` of rows, with the map held fixed."""
        step = max(1, CELLS // max(1, len(self.Y)))
        with torch.no_grad():
            return torch.cat([self.placed(part) for part in x.split(step)])

    def placed(self, x: Tensor) -> Tensor:
        """Places of one block of rows."""
        raise TypeError(f"{type(self).__name__} must define placed(x)")


def descended(
    z: Tensor, gradient: Callable[[Tensor], Tensor], steps: int = STEPS, rate: float = RATE
) -> Tensor:
    """Places after steps with momentum and gains, each row by itself."""
    update, gains = torch.zeros_like(z), torch.ones_like(z)
    for _ in range(steps):
        grad = gradient(z)
        gains = torch.where(update * grad < 0, gains + 0.2, gains * 0.8).clamp_min(0.01)
        update = MOMENTUM * update - rate * gains * grad
        z = z + update
    return z


def example(energy: Any, d: int, components: int, n: int = 7, seed: int = 7) -> Any:
    """A small map with some structure, for contract tests and tables."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, d, generator=generator, dtype=torch.float64)
    Y = torch.randn(n, components, generator=generator, dtype=torch.float64)
    energy.double()
    energy.remember(rows, Y - Y.mean(0))
    return energy.float()
