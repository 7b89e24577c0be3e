"""Source rows of different length at the door of a network from sequences to sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Ragged, Tokens


class Translate(nn.Module):
    """A network of sources and targets in the form that ``SequenceEnergy`` asks for.

    Sources are padded rows or ``Tokens`` of different length; the memory of a decoder begins with
    the encoded source.

    Parameters
    ----------
    net : with ``forward(src, tgt)``, ``start(src)`` and ``step(token, cache)``
    padding : token number behind the end of a source

    Examples
    --------
    >>> from groundstate.nn import RecurrentSeq2Seq
    >>> net = Translate(RecurrentSeq2Seq(5, 7, 4, 6))
    >>> x = Tokens.of(Ragged.of([[1, 2, 3], [4]]))
    >>> net(torch.ones(2, 4, dtype=torch.int64), x).shape
    torch.Size([2, 4, 7])
    """

    def __init__(self, net: nn.Module, padding: int = 0) -> None:
        super().__init__()
        self.net, self.padding = net, padding

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "padding": self.padding}

    def sources(self, x: Any) -> Tensor:
        """Source tokens in one tensor, ``(B, T)``."""
        if isinstance(x, Tensor):
            return x
        rows: Ragged = x.tokens if isinstance(x, Tokens) else x
        return rows.padded(self.padding)

    def forward(self, tokens: Tensor, x: Any) -> Tensor:
        out: Tensor = self.net(self.sources(x), tokens)
        return out

    def start(self, rows: int, x: Any = None) -> Mapping[str, Any]:
        net: Any = self.net
        memory: Mapping[str, Any] = net.start(self.sources(x))
        return memory

    def step(self, token: Tensor, cache: Mapping[str, Any]) -> tuple[Tensor, Mapping[str, Any]]:
        net: Any = self.net
        found: tuple[Tensor, Mapping[str, Any]] = net.step(token, cache)
        return found

    @torch.no_grad()
    def alignment(self, tokens: Tensor, x: Any) -> Tensor:
        """Where each target step looks in the source, ``(B, T', T)``."""
        net: Any = self.net
        found: Tensor = net.alignment(self.sources(x), tokens)
        return found
