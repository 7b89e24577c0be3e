r"""Which part of its input a unit sees: :math:`r_\ell = r_{\ell-1} + (K_\ell-1)D_\ell\prod_{m<\ell}S_m`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import TorchDispatchMode
from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.inspect.meta import on_meta, run

Sizes = tuple[float, ...]


@dataclass(frozen=True)
class ReceptiveField:
    """Unit i of a map sees the pixels ``start + i·jump`` to ``start + i·jump + size − 1``, per axis.

    One number stands for all axes that agree; ``size`` is None for a unit that sees everything.
    """

    size: Any
    jump: Any
    start: Any

    def __iter__(self) -> Any:
        return iter((self.size, self.jump, self.start))


@dataclass(frozen=True)
class Field:
    """Size, jump and start for every spatial axis."""

    size: Sizes
    jump: Sizes
    start: Sizes

    def joined(self, other: Field) -> Field:
        """What two branches see together."""
        start = tuple(map(min, self.start, other.start))
        ends = [max(a + b, c + d) for a, b, c, d in
                zip(self.start, self.size, other.start, other.size)]  # fmt: skip
        jump = tuple(map(max, self.jump, other.jump))
        return Field(tuple(e - s for e, s in zip(ends, start)), jump, start)

    def public(self) -> ReceptiveField:
        def plain(values: Sizes) -> Any:
            whole = [int(v) if v == int(v) else v for v in values]
            return whole[0] if len(set(whole)) == 1 else tuple(whole)

        return ReceptiveField(plain(self.size), plain(self.jump), plain(self.start))


Seen = Field | str | None  # a field, "all" of the input, or nothing of it (parameters)


class Follow(TorchDispatchMode):
    """Follows what every tensor of a forward pass sees of the input."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.n = max(0, x.ndim - 2)
        ones = (1.0,) * self.n
        self.kept: list[Tensor] = []  # identities stay unique while tensors live
        self.seen: dict[int, Seen] = {}
        self.put(x, Field(ones, ones, (0.0,) * self.n) if self.n else "all")

    def put(self, tensor: Tensor, seen: Seen) -> None:
        self.kept.append(tensor)
        self.seen[id(tensor)] = seen

    def of(self, tensor: Any) -> Seen:
        return self.seen.get(id(tensor)) if isinstance(tensor, Tensor) else None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        found = self._after(func.overloadpacket.__name__, args, kwargs or {}, out)
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, Tensor):
                self.put(tensor, found)
        return out

    def _after(self, name: str, args: Any, kwargs: Any, out: Any) -> Seen:
        flat: list[Any] = []
        for a in (*args, *kwargs.values()):
            flat += a if isinstance(a, list | tuple) else [a]
        sources = [(t, s) for t in flat if (s := self.of(t)) is not None]
        if not sources:
            return None
        if any(s == "all" for _, s in sources):
            return "all"
        fields = [s for _, s in sources if isinstance(s, Field)]
        x, field = sources[0][0], fields[0]
        for other in fields[1:]:
            field = field.joined(other)
        if name in _RULES:
            return _RULES[name](field, x, args, self.n)
        first = out[0] if isinstance(out, tuple | list) else out
        if not isinstance(first, Tensor):
            return field
        if "upsample" in name:
            factor = [b / a for a, b in zip(x.shape[-self.n :], first.shape[-self.n :])]
            wide = 1 if "bilinear" in name or "linear" in name else 0
            return Field(tuple(s + wide * j for s, j in zip(field.size, field.jump)),
                         tuple(j / f for j, f in zip(field.jump, factor)), field.start)  # fmt: skip
        same = first.ndim == x.ndim and first.shape[-self.n :] == x.shape[-self.n :]
        moved = any(s > 1 for s in x.shape[-self.n :]) and not same and name not in _HARMLESS
        return "all" if moved else field


_HARMLESS = ("slice", "select", "split", "chunk", "narrow")


def _window(field: Field, k: Sizes, s: Sizes, p: Sizes, d: Sizes) -> Field:
    return Field(
        tuple(r + (a - 1) * e * j for r, a, e, j in zip(field.size, k, d, field.jump)),
        tuple(j * b for j, b in zip(field.jump, s)),
        tuple(t - q * j for t, q, j in zip(field.start, p, field.jump)),
    )


def _convolution(field: Field, x: Tensor, args: Any, n: int) -> Seen:
    _, weight, _, stride, padding, dilation, transposed, *_ = args
    k = tuple(weight.shape[2:])
    s, p, d = _all(stride, n), _all(padding, n), _all(dilation, n)
    if not transposed:
        return _window(field, k, s, p, d)
    reach = tuple(ceil((a - 1) * e / b) for a, e, b in zip(k, d, s))  # inputs that meet, less one
    return Field(
        tuple(r + e * j for r, e, j in zip(field.size, reach, field.jump)),
        tuple(j / b for j, b in zip(field.jump, s)),
        tuple(t - e * j for t, e, j in zip(field.start, reach, field.jump)),
    )


def _pool(field: Field, x: Tensor, args: Any, n: int) -> Seen:
    k = _all(args[1], n)
    s = _all(args[2], n) if len(args) > 2 and len(args[2]) else k
    p = _all(args[3], n) if len(args) > 3 else (0.0,) * n
    d = _all(args[4], n) if len(args) > 4 and isinstance(args[4], list | tuple) else (1.0,) * n
    return _window(field, k, s, p, d)


def _pad(field: Field, x: Tensor, args: Any, n: int) -> Seen:
    before = [float(v) for v in args[1][::2]][::-1]  # the last axis comes first
    before = [0.0] * (n - len(before)) + before
    start = tuple(t - b * j for t, b, j in zip(field.start, before[-n:], field.jump))
    return Field(field.size, field.jump, start)


_RULES = {
    "convolution": _convolution, "convolution_overrideable": _convolution,
    "max_pool2d_with_indices": _pool, "max_pool3d_with_indices": _pool, "max_pool2d": _pool,
    "avg_pool2d": _pool, "avg_pool3d": _pool, "avg_pool1d": _pool,
    "constant_pad_nd": _pad, "reflection_pad1d": _pad, "reflection_pad2d": _pad,
    "replication_pad1d": _pad, "replication_pad2d": _pad,
}  # fmt: skip


def _all(value: Any, n: int) -> Sizes:
    values = tuple(float(v) for v in (value if isinstance(value, list | tuple) else [value]))
    return values * n if len(values) == 1 else values


def receptive_field(
    net: nn.Module, layer: nn.Module | str, input_shape: Sequence[int]
) -> ReceptiveField:
    r"""What a unit of a layer sees of the input, from the sizes of the layers alone.

    .. math:: r_\ell = r_{\ell-1} + (K_\ell-1)D_\ell\prod_{m<\ell}S_m,\qquad r_0 = 1

    Branches that meet see the union of what each sees. Transposed convolution and up-sampling divide
    the jump; their size is that of the unit that sees most.

    Parameters
    ----------
    net : run once on the meta device, nothing is computed
    layer : a module of the network, or its name
    input_shape : shape of one example, ``(C, *spatial)``

    Returns
    -------
    ReceptiveField : ``size``, ``jump`` (pixels between neighbouring units) and ``start`` (first pixel
    of the first unit, negative in padding), one number where the axes agree

    Examples
    --------
    >>> net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3))
    >>> [tuple(receptive_field(net, str(i), (1, 32, 32))) for i in range(4)]
    [(3, 1, 0), (5, 1, 0), (6, 2, 0), (10, 2, 0)]
    """
    where = net.get_submodule(layer) if isinstance(layer, str) else layer
    if len(input_shape) < 2:
        raise ShapeError(
            f"receptive_field needs the shape (C, *spatial) of one example, got {tuple(input_shape)}"
        )
    x = torch.empty(1, *input_shape, device="meta")
    follow = Follow(x)
    found: list[Seen] = []
    handle = where.register_forward_hook(lambda m, a, out: found.append(follow.of(out)))
    try:
        with on_meta(net), follow:
            run(net, x)
    finally:
        handle.remove()
    if not found or found[-1] is None:
        raise Unsupported(f"the layer {layer!r} was not reached from the input")
    seen = found[-1]
    if isinstance(seen, Field):
        return seen.public()
    return ReceptiveField(None, None, None)


def empirical_receptive_field(
    net: nn.Module,
    layer: nn.Module | str,
    input_shape: Sequence[int],
    unit: Sequence[int] | None = None,
    *,
    n: int = 8,
    generator: torch.Generator | None = None,
) -> tuple[tuple[int, int], ...]:
    r"""First and last pixel per axis where :math:`\partial h/\partial x\ne0` for a unit h of a layer.

    The support over ``n`` random inputs and all channels of the unit, in evaluation mode; rectifiers
    and max pooling hide pixels from single inputs.

    Parameters
    ----------
    net, layer, input_shape : as for ``receptive_field``
    unit : its place on the map; by default the middle
    n : random inputs
    generator : of the inputs

    Examples
    --------
    >>> net = nn.Sequential(nn.Conv1d(1, 2, 3, dilation=2), nn.Conv1d(2, 2, 3))
    >>> empirical_receptive_field(net, "1", (1, 20), (0,))
    ((0, 6),)
    """
    generator = generator or torch.Generator().manual_seed(0)
    where = net.get_submodule(layer) if isinstance(layer, str) else layer
    like = next(iter(net.parameters()), torch.zeros(()))
    x = torch.randn(n, *input_shape, generator=generator).to(like).requires_grad_()
    found: list[Tensor] = []
    handle = where.register_forward_hook(lambda m, a, out: found.append(out))
    try:
        with torch.enable_grad():
            run(net, x)
    finally:
        handle.remove()
    h = found[-1]
    place = [s // 2 for s in h.shape[2:]] if unit is None else [int(u) for u in unit]
    where_on_map: Any = (slice(None), slice(None), *place)
    chosen = h[where_on_map]  # (n, C)
    c = torch.randn(chosen.shape, generator=generator).to(chosen)
    (slope,) = torch.autograd.grad((chosen * c).sum(), x)
    hit = (slope != 0).any(1).any(0)  # (*spatial,)
    spans = []
    for axis in range(hit.ndim):
        others = [a for a in range(hit.ndim) if a != axis]
        line = hit.amax(others) if others else hit
        at = line.nonzero().flatten()
        if not len(at):
            raise Unsupported(f"no pixel moves unit {tuple(place)} of {layer!r} in {n} inputs")
        spans.append((int(at[0]), int(at[-1])))
    return tuple(spans)
