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

from groundstate.compute.hashing_torch import _shift, _signed, mix64_torch
from groundstate.compute.random import GOLDEN, Key
from groundstate.errors import Unsupported

_GOLDEN = _signed(GOLDEN)
_ONE = 1 << 32


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
        self.register_buffer("stream", torch.tensor(_signed(key.low)))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("cut", torch.tensor(round(p * _ONE)))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        size = x[0].numel()
        place = torch.arange(x.shape[0] * size, device=x.device).view(x.shape)
        mask = keep(self.stream, self.count, self.cut, place, x.dtype)
        self.count.add_(1)
        return x * mask

    def extra_repr(self) -> str:
        return "keyed"


def keep(stream: Tensor, count: Tensor, cut: Tensor, place: Tensor, dtype: torch.dtype) -> Tensor:
    """Scaled masks: 1/(1-p) where a unit stays, 0 where it goes; shaped as all of them together."""
    word = mix64_torch(stream ^ mix64_torch(count * _GOLDEN))
    drawn = _shift(mix64_torch(word + (place + 1) * _GOLDEN), 32)
    return torch.where(drawn >= cut, _ONE / (_ONE - cut).to(dtype), 0.0).to(dtype)


def plain_dropouts(module: nn.Module) -> list[tuple[str, nn.Module, str, nn.Dropout]]:
    """The dropout layers of torch in a module: path, owner, attribute, layer."""
    found = []
    for prefix, owner in module.named_modules():
        for leaf, child in owner.named_children():
            if isinstance(child, nn.Dropout):
                if getattr(child, "mask_per_epoch", False):
                    raise Unsupported(
                        "a mask that lasts an epoch is not there for keyed dropout; use "
                        "mask_per_epoch=False."
                    )
                found.append((f"{prefix}.{leaf}" if prefix else leaf, owner, leaf, child))
    return found


@contextmanager
def keyed_dropout(module: nn.Module, key: Key) -> Iterator[None]:
    """Let the dropout layers of a module draw from streams of this key inside the block.

    The layer at a path draws from ``key.fold("dropout", path)``; afterwards the module has its own
    layers back.
    """
    swapped = plain_dropouts(module)
    for path, owner, leaf, layer in swapped:
        own = KeyedDropout(layer.p, key.fold("dropout", path)).train(layer.training)
        first = next(iter(module.parameters()), None)
        setattr(owner, leaf, own if first is None else own.to(first.device))
    try:
        yield
    finally:
        for _, owner, leaf, layer in swapped:
            setattr(owner, leaf, layer.train(getattr(owner, leaf).training))
