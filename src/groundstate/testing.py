r"""Checks of symmetries: what a function does when its input is shifted, permuted, turned or flipped.

A function is *equivariant* when :math:`f(t_{in}x) = t_{out}f(x)` and *invariant* when
:math:`f(tx) = f(x)`. Convolution is equivariant to shifts; a pooling over all places makes it
invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import GroundstateError

Transform = Callable[[Any], Any]


class NotSymmetric(GroundstateError, AssertionError):
    """A function that moves differently from its input."""


def check_equivariance(
    f: Callable[[Any], Tensor],
    t_in: Transform,
    t_out: Transform | None = None,
    x: Any = None,
    *,
    atol: float = 1e-6,
    where: Callable[[Tensor], Tensor] | None = None,
) -> float:
    r"""The largest :math:`|f(t_{in}x) - t_{out}f(x)|`; above ``atol`` it is an error.

    Parameters
    ----------
    f : the function
    t_in : transform of the input, such as ``shift(1)``
    t_out : of the output; by default the same as ``t_in``
    x : example input
    atol : allowed difference
    where : which part of the outputs is compared, such as the interior; by default all

    Examples
    --------
    >>> net = torch.nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")
    >>> x = torch.randn(1, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    >>> check_equivariance(net, shift(2, 1), x=x) < 1e-6
    True
    """
    if x is None:
        raise ValueError("check_equivariance needs an example input x=")
    with torch.no_grad():
        moved, out = f(t_in(x)), (t_in if t_out is None else t_out)(f(x))
    if moved.shape != out.shape:
        raise NotSymmetric(
            f"f(t_in(x)) has the shape {tuple(moved.shape)} and t_out(f(x)) {tuple(out.shape)}; give "
            "the transform of outputs as t_out"
        )
    if where is not None:
        moved, out = where(moved), where(out)
    worst = float((moved - out).abs().max()) if moved.numel() else 0.0
    if not worst <= atol:
        raise NotSymmetric(f"f(t_in(x)) and t_out(f(x)) differ by {worst:.3g}, allowed {atol:g}")
    return worst


def check_invariance(
    f: Callable[[Any], Tensor], t: Transform, x: Any = None, *, atol: float = 1e-6
) -> float:
    r"""The largest :math:`|f(tx) - f(x)|`; above ``atol`` it is an error.

    >>> x = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))
    >>> check_invariance(lambda h: h.sum(1), permutation([4, 0, 3, 1, 2]), x)  < 1e-5
    True
    """
    return check_equivariance(f, t, lambda out: out, x, atol=atol)


# --- transforms --------------------------------------------------------------------------------


def shift(*by: int, fill: str = "circular") -> Transform:
    """Move the last axes by so many steps, around the border or with zeros coming in.

    >>> shift(1)(torch.tensor([1, 2, 3])).tolist(), shift(-1, fill="zero")(torch.tensor([1, 2, 3])).tolist()
    ([3, 1, 2], [2, 3, 0])
    """
    if fill not in ("circular", "zero"):
        raise ValueError(f"fill is 'circular' or 'zero', got {fill!r}")

    def move(x: Tensor) -> Tensor:
        axes = tuple(range(-len(by), 0))
        out = torch.roll(x, by, axes)
        if fill == "zero":
            out = out.clone()
            for axis, step in zip(axes, by):
                n = x.shape[axis]
                gone = min(abs(step), n)
                out.narrow(axis, 0 if step > 0 else n - gone, gone).zero_()
        return out

    return move


def permutation(order: Sequence[int] | Tensor, axis: int = 1) -> Transform:
    """Items of an axis in another order: tokens, nodes (1) or channels (1) of ``(N, ...)``.

    >>> permutation([2, 0, 1], axis=0)(torch.tensor([10, 20, 30])).tolist()
    [30, 10, 20]
    """
    index = torch.as_tensor(order, dtype=torch.int64)
    return lambda x: x.index_select(axis, index.to(x.device))


def permute_graph(order: Sequence[int] | Tensor) -> Transform:
    """Nodes of a graph ``(x, edge_index)`` in another order, with its edges ``(2, E)``.

    >>> x, edges = permute_graph([1, 2, 0])((torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0], [2]])))
    >>> x.flatten().tolist(), edges.tolist()
    ([2.0, 3.0, 1.0], [[2], [1]])
    """
    index = torch.as_tensor(order, dtype=torch.int64)
    place = torch.empty_like(index)
    place[index] = torch.arange(len(index))

    def move(graph: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        x, edges, *rest = graph
        return (x.index_select(0, index.to(x.device)), place.to(edges.device)[edges], *rest)

    return move


def rotate90(times: int = 1) -> Transform:
    """Turn the last two axes by quarter turns.

    >>> rotate90()(torch.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    return lambda x: torch.rot90(x, times, (-2, -1))


def flip(*axes: int) -> Transform:
    """Mirror along axes, by default the last.

    >>> flip()(torch.tensor([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    return lambda x: torch.flip(x, axes or (-1,))


def interior(margin: int, axes: int = 2) -> Callable[[Tensor], Tensor]:
    """All but ``margin`` entries at each end of the last axes."""

    def cut(x: Tensor) -> Tensor:
        for axis in range(-axes, 0):
            x = x.narrow(axis, margin, max(0, x.shape[axis] - 2 * margin))
        return x

    return cut
