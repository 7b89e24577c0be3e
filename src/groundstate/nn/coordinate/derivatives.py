r"""Derivatives of a function at points: jets where they are written, else nested gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from groundstate.errors import NotApplicable
from groundstate.nn.coordinate.jets import Index, jet

WAYS = ("auto", "jet", "nested")


def derivatives(
    u: Callable[[Tensor], Tensor], x: Tensor, wanted: Sequence[Index], method: str = "auto"
) -> dict[Index, Tensor]:
    r"""Value and derivatives of u at points x ``(N, d)``, each ``(N, m)``.

    Parameters
    ----------
    u : a module or function of points
    x : points ``(N, d)``
    wanted : derivatives as tuples of coordinates: ``(0,)`` is :math:`\partial_0u`, ``(0, 1)``
        :math:`\partial_0\partial_1u`, ``()`` the value, which is always there
    method : "jet", one pass of Taylor-mode propagation up to order two; "nested", gradients of
        gradients, of any order and through any module; "auto", jets where they are written

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    >>> x = torch.linspace(-1, 1, 5, dtype=torch.float64)[:, None]
    >>> a, b = (derivatives(net, x, [(0, 0)], how)[0, 0] for how in ("jet", "nested"))
    >>> torch.allclose(a, b, atol=1e-12)
    True
    """
    if method not in WAYS:
        raise ValueError(f"method is one of {', '.join(WAYS)}, got {method!r}")
    if method != "nested":
        try:
            if not isinstance(u, nn.Module):
                raise NotApplicable("jets go through modules; a function has no layers to read")
            return jet(u, x, wanted)
        except NotApplicable:
            if method == "jet":
                raise
    return nested(u, x, wanted)


def nested(
    u: Callable[[Tensor], Tensor], x: Tensor, wanted: Sequence[Index]
) -> dict[Index, Tensor]:
    """The same by gradients of gradients: the reference, of any order and for any function."""
    graph = torch.is_grad_enabled()
    with torch.enable_grad():
        at = x if x.requires_grad else x.detach().requires_grad_()
        value = u(at)
        if value.ndim != 2:
            value = value.reshape(len(x), -1)
        found: dict[Index, Tensor] = {(): value}
        for index in sorted({tuple(sorted(w)) for w in wanted}, key=len):
            for order in range(1, len(index) + 1):
                if index[:order] not in found:
                    found[index[:order]] = _slope(found[index[: order - 1]], at, index[order - 1])
    return found if graph else {index: v.detach() for index, v in found.items()}


def _slope(f: Tensor, x: Tensor, i: int) -> Tensor:
    """∂f/∂x_i of every column, ``(N, m)``."""
    if not f.requires_grad:
        return torch.zeros_like(f)
    columns = []
    for column in f.unbind(1):
        (g,) = torch.autograd.grad(column.sum(), x, create_graph=True, allow_unused=True)
        columns.append(torch.zeros_like(f[:, 0]) if g is None else g[:, i])
    return torch.stack(columns, 1)
