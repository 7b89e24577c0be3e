r"""Conditions that hold by construction, :math:`u(x) = g(x) + \ell(x)N_\theta(x)`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from groundstate.nn.coordinate.derivatives import nested
from groundstate.nn.coordinate.jets import Index, Pair, push


class Constrained(nn.Module):
    r"""A network that has given values where :math:`\ell` vanishes, :math:`u = g + \ell N_\theta`.

    Parameters
    ----------
    net : :math:`N_\theta`
    distance : :math:`\ell`, from points ``(N, d)`` to ``(N, 1)`` or ``(N, m)``, zero where u is given
    values : g, from points to ``(N, m)``; its values there are those of u

    Examples
    --------
    >>> class End(nn.Module):
    ...     def forward(self, x):
    ...         return x
    >>> u = Constrained(nn.Linear(1, 1), End(), nn.Identity())
    >>> u(torch.zeros(1, 1)).item()
    0.0
    """

    def __init__(self, net: nn.Module, distance: nn.Module, values: nn.Module) -> None:
        super().__init__()
        self.net, self.distance, self.values = net, distance, values

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.values(x) + self.distance(x) * self.net(x)
        return out


@push.register
def _(module: Constrained, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    x, k = h[0], len(h) - 1 - len(pairs)
    coordinates = [int(row.argmax()) for row in h[1 : 1 + k, 0]]
    names: list[Index] = [
        (), *((i,) for i in coordinates),
        *((coordinates[i - 1], coordinates[j - 1]) for i, j in pairs),
    ]  # fmt: skip
    n = push(module.net, h, pairs)
    g, ell = (_stack(part, x, names) for part in (module.values, module.distance))
    out = [g[0] + ell[0] * n[0]]
    out += [g[i] + ell[i] * n[0] + ell[0] * n[i] for i in range(1, 1 + k)]
    for at, (i, j) in enumerate(pairs, 1 + k):
        out.append(g[at] + ell[at] * n[0] + ell[i] * n[j] + ell[j] * n[i] + ell[0] * n[at])
    return torch.stack([torch.broadcast_to(o, n[0].shape) for o in out])


def _stack(f: Callable[[Tensor], Tensor], x: Tensor, names: list[Index]) -> list[Tensor]:
    found = nested(f, x, names)
    return [found[tuple(sorted(name))] for name in names]
