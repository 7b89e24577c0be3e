r"""A finite table of energies, :math:`e(x) = \theta_x`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy, batch_size
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite
from groundstate.math.info.free_energy import free_energy


@registered(r"e(x) = \theta_x", lambda: TableEnergy(torch.tensor([1.0, 2.0, 4.0, 0.5])))
class TableEnergy(Energy):
    r"""Any energy of finite variables, :math:`e(x, y, \dots) = \theta_{x,y,\dots}`.

    Parameters
    ----------
    table : initial energies, one axis per variable; ``+inf`` forbids a value
    variables : a name per axis; by default the first of x, y, z
    shape : sizes of the axes instead of ``table``; all energies start at 0

    Attributes
    ----------
    theta : Parameter, one axis per variable

    Examples
    --------
    >>> e = TableEnergy(torch.tensor([1.0, 2.0, 4.0]))
    >>> e(x=torch.tensor([2, 0])).tolist()
    [4.0, 1.0]
    >>> e.table("x").tolist()
    [[1.0, 2.0, 4.0]]
    """

    theta: Tensor

    def __init__(
        self,
        table: Tensor | None = None,
        variables: Sequence[str] | str | None = None,
        *,
        shape: Sequence[int] | None = None,
    ) -> None:
        if (table is None) == (shape is None):
            raise ValueError("give either the table of energies or its shape")
        values = torch.zeros(*shape) if table is None and shape is not None else table
        assert values is not None
        if variables is None:
            variables = ("x", "y", "z")[: values.ndim]
        names = (variables,) if isinstance(variables, str) else tuple(variables)
        if len(names) != values.ndim:
            raise ValueError(f"a table with {values.ndim} axes needs as many names, got {names}")
        super().__init__(**{name: Finite(n) for name, n in zip(names, values.shape)})
        self.theta = nn.Parameter(values.detach().clone())

    def config(self) -> dict[str, Any]:
        return {"shape": list(self.theta.shape), "variables": list(self.spaces)}

    def forward(self, **values: Tensor) -> Tensor:
        return self.theta[tuple(values[name] for name in self.spaces)]

    def _slices(self, names: frozenset[str], given: dict[str, Tensor]) -> Tensor:
        """Energies of all values of ``names``, ``(B, *sizes)``, in the order of ``spaces``."""
        known = [n for n in self.spaces if n not in names]
        axes = list(self.spaces)
        moved = self.theta.permute(*(axes.index(n) for n in (*known, *self.ordered(names))))
        batch_size(given)
        return moved[tuple(given[n] for n in known)] if known else moved.unsqueeze(0)

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if not variables or not variables <= set(self.spaces):
            return None
        if kind == "table" and len(variables) == 1:
            return lambda **given: self._slices(variables, given)
        if kind == "log_partition":

            def log_partition(*, T: float = 1.0, **given: Tensor) -> Tensor:
                e = self._slices(variables, given).flatten(1)
                return -free_energy(e, T) / T

            return log_partition
        return None

    def _derived_keys(self) -> Iterable[tuple[str, frozenset[str]]]:
        names = list(self.spaces)
        yield from (("table", frozenset({n})) for n in names)
        for r in range(1, len(names) + 1):
            yield from (("log_partition", frozenset(c)) for c in combinations(names, r))
