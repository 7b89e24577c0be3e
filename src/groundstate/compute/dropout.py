r"""Dropout whose masks are a function of a key, the step and the place, not of a generator's state.

Unit i of pass t is kept if the first 32 bits of :math:`\mathrm{mix}(w_t + (i+1)\,g)` reach
:math:`p\,2^{32}`, with :math:`w_t = \mathrm{mix}(s \oplus \mathrm{mix}(t\,g))`, s the layer's stream
and g the golden ratio as a 64-bit word. So a network drops the same units alone, in a population of
any size, on any device, and after a resume: the count of passes is a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import functorch_wrapped
from groundstate.compute.random import GOLDEN, Key
from groundstate.compute.weight_line.hashing_torch import _shift, _signed, mix64_torch
from groundstate.errors import Unsupported

_GOLDEN = _signed(GOLDEN)
_ONE = 1 << 32
_AHEAD, _CELLS = 32, 1 << 23  # passes, and places, whose masks a GPU draws in one go


class KeyedDropout(nn.Module):
    r"""Training: :math:`a\,m/(1-p)` with keyed masks m; evaluation: a.

    Parameters
    ----------
    p : float
        Probability of dropping, kept as a multiple of :math:`2^{-32}`.
    key : Key
        The stream of this layer.

    Attributes
    ----------
    stream, count, cut : Tensor of int64, ()
        The key, passes so far and :math:`p\,2^{32}`; buffers, so that members of a population have
        their own.

    Examples
    --------
    >>> import torch
    >>> a, b = KeyedDropout(0.5, Key.of(0)), KeyedDropout(0.5, Key.of(0))
    >>> x = torch.ones(3, 4)
    >>> first = a(x)
    >>> torch.equal(first, b(x)), torch.equal(first, a(x))
    (True, False)
    """

    stream: Tensor
    count: Tensor
    cut: Tensor

    def __init__(self, p: float, key: Key) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise Unsupported(f"p={p} drops everything or nothing sensible; pass 0 <= p < 1.")
        # they belong to a run, not to the network: its state_dict is the same with and without them
        self.register_buffer("stream", torch.tensor(_signed(key.low)), persistent=False)
        self.register_buffer("count", torch.tensor(0), persistent=False)
        self.register_buffer("cut", torch.tensor(round(p * _ONE)), persistent=False)
        self._ahead: tuple[list[Tensor], int] = [], -1  # masks to come, the last first; version

    @property
    def p(self) -> float:
        """Probability of dropping."""
        return float(self.cut) / _ONE

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        mask = self._written(x)
        if mask is None:
            mask = self._drawn_ahead(x)
        if mask is None:
            place = torch.arange(x.numel(), device=x.device).view(x.shape)
            mask = keep(self.stream, self.count, self.cut, place, x.dtype)
        self.count.add_(1)
        return x * mask

    def _drawn_ahead(self, x: Tensor) -> Tensor | None:
        """The mask out of a block drawn for several passes: a pass alone is many small kernels.

        None where tensors are traced or captured. A count that somebody else has moved, which its
        version tells without looking at it, makes the block worthless.
        """
        if torch.compiler.is_compiling() or x.device.type != "cuda" or type(x) is not Tensor:
            return None
        if torch.cuda.is_current_stream_capturing() or any(
            map(functorch_wrapped, (x, self.stream))
        ):
            return None
        return self._from_block(x)

    def _from_block(self, x: Tensor) -> Tensor:
        masks, version = self._ahead
        stale = not masks or version != self.count._version
        if stale or masks[-1].shape != x.shape or masks[-1].dtype != x.dtype:
            passes = max(1, min(_AHEAD, _CELLS // max(1, x.numel())))
            counts = self.count + torch.arange(passes, device=x.device)
            place = torch.arange(x.numel(), device=x.device).view(x.shape)
            counts = counts.view(-1, *[1] * x.ndim)
            masks = [*keep(self.stream, counts, self.cut, place, x.dtype).unbind(0)][::-1]
        self._ahead = masks, self.count._version + 1  # the pass itself adds one
        return masks.pop()

    def _written(self, x: Tensor) -> Tensor | None:
        """The mask by one compiled walk; None where tensors are not plain memory of the host."""
        if torch.compiler.is_compiling() or x.device.type != "cpu" or type(x) is not Tensor:
            return None
        if x.dtype not in (torch.float32, torch.float64) or any(
            map(functorch_wrapped, (x, self.stream))
        ):
            return None
        from groundstate.compute.population.dense_numba import MASKS

        mask = torch.empty(x.shape, dtype=x.dtype)
        own = (t.view(1).numpy() for t in (self.stream, self.count, self.cut))
        MASKS[0](mask.view(1, 1, -1).numpy(), *own)  # places b * H + h with one unit H
        return mask

    def extra_repr(self) -> str:
        return "keyed"


def keep(stream: Tensor, count: Tensor, cut: Tensor, place: Tensor, dtype: torch.dtype) -> Tensor:
    """Scaled masks: 1/(1-p) where a unit stays, 0 where it goes; shaped as all of them together."""
    word = mix64_torch(stream ^ mix64_torch(count * _GOLDEN))
    drawn = _shift(mix64_torch(word + (place + 1) * _GOLDEN), 32)
    wide = (
        dtype if dtype in (torch.float32, torch.float64) else torch.float32
    )  # halves end at 65504
    return torch.where(drawn >= cut, _ONE / (_ONE - cut).to(wide), 0.0).to(dtype)


def plain_dropouts(module: nn.Module) -> list[tuple[str, nn.Module, str, nn.Dropout]]:
    """The dropout layers of torch in a module: path, owner, attribute, layer."""
    found = []
    for prefix, owner in module.named_modules():
        for leaf, child in owner._modules.items():  # also a layer that stands there twice
            if isinstance(child, nn.Dropout):
                found.append((f"{prefix}.{leaf}" if prefix else leaf, owner, leaf, child))
    return found


@contextmanager
def keyed_dropout(module: nn.Module, key: Key, *, strict: bool = True) -> Iterator[None]:
    """Let the dropout layers of a module draw from streams of this key inside the block.

    The layer at a path draws from ``key.fold("dropout", path)``; afterwards the module has its own
    layers back. Masks that last an epoch and layers that drop everything are refused, or left as
    they are with ``strict=False``, as are layers that drop nothing.
    """
    swapped = []
    for path, owner, leaf, layer in plain_dropouts(module):
        lasting = bool(getattr(layer, "mask_per_epoch", False))
        if lasting and strict:
            raise Unsupported(
                "a mask that lasts an epoch is not there for keyed dropout; use "
                "mask_per_epoch=False."
            )
        if strict or (0.0 < layer.p < 1.0 and not lasting):
            swapped.append((path, owner, leaf, layer))
    first = next(iter(module.parameters()), None)
    for path, owner, leaf, layer in swapped:
        own = KeyedDropout(layer.p, key.fold("dropout", path)).train(layer.training)
        setattr(owner, leaf, own if first is None else own.to(first.device))
    try:
        yield
    finally:
        for _, owner, leaf, layer in swapped:
            setattr(owner, leaf, layer.train(getattr(owner, leaf).training))
