r"""One energy of x for each class, :math:`e(x \mid y) = e_{c(y)}(x)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real


def _example() -> ByClassEnergy:
    from groundstate.energy.graphical.factor_graph import FactorGraphEnergy

    parts = [FactorGraphEnergy([2, 2], [(0,), (0, 1)]) for _ in range(2)]
    for k, part in enumerate(parts):
        part.theta.data.normal_(generator=torch.Generator().manual_seed(k))
    return ByClassEnergy(parts)


@registered(r"e(x \mid y) = e_{c(y)}(x),\ c = \arg\max_k y_k", _example)
class ByClassEnergy(Energy):
    r"""Each class has an energy of its own, :math:`e(x \mid y) = e_{c(y)}(x)` with
    :math:`c(y) = \arg\max_ky_k` for a context y that is one-hot.

    Parameters
    ----------
    parts : energies of x, one for each class

    Examples
    --------
    >>> from groundstate.energy import FactorGraphEnergy
    >>> e = ByClassEnergy([FactorGraphEnergy([2], [(0,)]) for _ in range(2)])
    >>> e.parts[1].theta.data.fill_(3.0)
    tensor([3., 3.])
    >>> e(x=torch.zeros(2, 1), y=torch.eye(2)).tolist()
    [0.0, 3.0]
    """

    held = frozenset({"y"})  # a class, whatever its numbers

    def __init__(self, parts: Sequence[Energy]) -> None:
        super().__init__(x=parts[0].spaces["x"], y=Real(len(parts)))
        self.parts = nn.ModuleList(parts)
        self.normalised = frozenset.intersection(*(p.normalised for p in parts)) & {"x"}
        self.missing = frozenset.intersection(*(p.missing for p in parts)) & {"x"}

    def config(self) -> dict[str, Any]:
        return {"parts": list(self.parts)}

    def groups(self, y: Tensor) -> Iterator[tuple[Any, Tensor]]:
        """The energy of each class that occurs, and the numbers of its rows."""
        which = y.argmax(1)
        for k, part in enumerate(self.parts):
            rows = (which == k).nonzero()[:, 0]
            if len(rows):
                yield part, rows

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if variables != {"x"} or kind not in ("sites", "log_partition"):
            return None
        offers = [part.ability(kind, "x") for part in self._each()]
        if any(offer is None for offer in offers):
            return None
        return self._sites if kind == "sites" else self._log_partition

    def _derived_keys(self) -> list[tuple[str, frozenset[str]]]:
        return [("log_partition", frozenset({"x"}))]

    def _each(self) -> list[Energy]:
        return [part for part in self.parts if isinstance(part, Energy)]

    def _sites(self, x: Tensor, y: Tensor, **settings: Any) -> Tensor:
        which = y.argmax(1)
        each = [part.ability("sites", "x") for part in self._each()]
        parts = [sites(x=x, **settings) for sites in each if sites is not None]
        return torch.stack(parts)[which, torch.arange(len(x), device=x.device)]

    def _log_partition(self, y: Tensor, T: float = 1.0) -> Tensor:
        each = [part.ability("log_partition", "x") for part in self._each()]
        return torch.cat([log_z(T=T) for log_z in each if log_z is not None])[y.argmax(1)]

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        out = x.new_zeros(len(x))
        for part, rows in self.groups(y):
            out = out.index_put((rows,), part(x=x[rows]))
        return out
