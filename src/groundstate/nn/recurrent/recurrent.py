r"""Recurrent networks, :math:`h_t = \phi(x_t, h_{t-1})`: simple, LSTM and GRU behind one door."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from groundstate.compute.rows import Ragged
from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import blank
from groundstate.nn.recurrent.cells import ResetFirstGRU
from groundstate.nn.recurrent.padding import pad_batch, unpad

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
State = Tensor | tuple[Tensor, Tensor]  # (layers·directions, B, hidden); two of them for an LSTM
Items = TypeVar("Items", Tensor, Ragged)


@blocks.register(
    make=lambda: Recurrent("gru", 3, 4), batch=rows_of(5, 3), formula=r"h_t=\phi(x_t,h_{t-1})"
)
class Recurrent(nn.Module):
    r"""States of a sequence, one after the other.

    .. math::
        \text{rnn: } & h_t = \tanh(W_xx_t + W_hh_{t-1} + b) \\
        \text{lstm: } & c_t = f\odot c_{t-1} + i\odot g,\quad h_t = o\odot\tanh c_t \\
        \text{gru: } & \tilde h = \tanh(Wx_t + r\odot(Uh_{t-1} + b)),\quad
                       h_t = u\odot h_{t-1} + (1-u)\odot\tilde h

    The three are interchangeable; torch's kernels run them. Items behind the end of a row are
    neither read nor written.

    Parameters
    ----------
    cell : "rnn", "lstm" or "gru"
    in_features, hidden : sizes
    layers : stacked; a layer reads the states of the one before
    bidirectional : a second pass from the end, outputs side by side
    learn_h0 : the state before the first item is learned instead of 0
    reset_after : of the GRU; False is :math:`\tanh(Wx + U(r\odot h) + b)`, a slower loop
    update_bias, forget_bias : initial bias of the GRU's u and of the LSTM's f; large values keep
        what was seen, and gradients, over many items
    dropout : between layers in training
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = Recurrent("lstm", 3, 5)
    >>> net(torch.ones(2, 7, 3)).shape
    torch.Size([2, 7, 5])
    >>> net(Ragged.of([torch.ones(4, 3), torch.ones(2, 3)]))
    2 sequences of 2 to 4 items of shape (5,), float32
    """

    def __init__(
        self,
        cell: str,
        in_features: int,
        hidden: int,
        layers: int = 1,
        bidirectional: bool = False,
        *,
        learn_h0: bool = False,
        reset_after: bool = True,
        update_bias: float = 0.0,
        forget_bias: float = 0.0,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if cell not in CELLS:
            raise Unsupported(f"cell {cell!r} is not known; use one of {', '.join(CELLS)}")
        if not reset_after and (cell != "gru" or layers > 1 or bidirectional):
            raise Unsupported("reset_after=False is a GRU of one layer in one direction")
        self.cell, self.in_features, self.hidden, self.layers = cell, in_features, hidden, layers
        self.bidirectional, self.learn_h0, self.reset_after = bidirectional, learn_h0, reset_after
        self.update_bias, self.forget_bias, self.dropout = update_bias, forget_bias, dropout
        self.out_features = hidden * (2 if bidirectional else 1)
        between = dropout if layers > 1 else 0.0
        self.core: nn.Module = (
            blank(CELLS[cell], in_features, hidden, layers, batch_first=True,
                      bidirectional=bidirectional, dropout=between)
            if reset_after else ResetFirstGRU(in_features, hidden)
        )  # fmt: skip
        self.h0 = (
            nn.Parameter(torch.zeros(layers * (2 if bidirectional else 1), 1, hidden))
            if learn_h0
            else None
        )
        self._init(generator or torch.Generator().manual_seed(0))

    @torch.no_grad()
    def _init(self, generator: torch.Generator) -> None:
        """Uniform on ±1/√hidden, as torch; then the bias of the gate that keeps."""
        for name, p in self.core.named_parameters():
            if p.is_meta:
                continue
            draw = torch.rand(p.shape, generator=generator, device=generator.device)
            p.copy_((2 * draw - 1) / self.hidden**0.5)
            gate = {"gru": self.update_bias, "lstm": self.forget_bias}.get(self.cell, 0.0)
            if gate and "bias" in name:
                p[self.hidden : 2 * self.hidden] = gate if "bias_ih" in name else 0.0

    def start(self, rows: int) -> State:
        """The state before the first item."""
        weight = next(self.core.parameters())
        shape = (self.layers * (2 if self.bidirectional else 1), rows, self.hidden)
        h = weight.new_zeros(shape) if self.h0 is None else self.h0.expand(shape).contiguous()
        return (h, torch.zeros_like(h)) if self.cell == "lstm" else h

    def forward(self, x: Items, lengths: Tensor | None = None) -> Items:
        """Outputs of all items: ``(B, T, in_features)`` to ``(B, T, out_features)``, zeros behind
        ``lengths`` ``(B,)``; ragged rows to ragged rows."""
        if isinstance(x, Ragged):
            if x.equal:
                return x.like(self.run(x.padded())[0].flatten(0, 1))
            padded, _ = pad_batch(x)
            out, _ = self.run(padded, x.lengths)
            return unpad(out, x.lengths)
        return self.run(x, lengths)[0]

    def run(
        self, x: Tensor, lengths: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Outputs ``(B, T, out_features)`` and the state behind each row's last item."""
        if x.ndim != 3 or x.shape[-1] != self.in_features:
            raise ShapeError(
                f"Recurrent takes (batch, length, {self.in_features}), got {tuple(x.shape)}"
            )
        state = self.start(len(x)) if state is None else state
        if isinstance(self.core, ResetFirstGRU):
            assert isinstance(state, Tensor)
            out, state = self.core(x, state, lengths)
            return out if lengths is None else cut(out, lengths), state
        if lengths is None:
            result: tuple[Tensor, State] = self.core(x, state)
            return result
        if not bool((lengths > 0).all()):
            row = int((lengths <= 0).nonzero()[0])
            raise ShapeError(f"row {row} has no item; a recurrent network needs at least one")
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed_out, state = self.core(packed, state)
        out, _ = pad_packed_sequence(packed_out, batch_first=True, total_length=x.shape[1])
        return out, state

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Output ``(B, out_features)`` and new state of the next items ``(B, in_features)``."""
        if self.bidirectional:
            raise Unsupported("a network that also reads from the end cannot go step by step")
        out, state = self.run(x[:, None], None, state)
        return out[:, 0], state

    def extra_repr(self) -> str:
        return f"{self.cell!r}, {self.in_features}, {self.hidden}"


@blocks.register(make=lambda: Reverse(), batch=rows_of(5, 3), formula=r"x_{T+1-t}")
class Reverse(nn.Module):
    """Sequences from their end to their beginning; twice is the identity.

    Between two recurrent layers it lets the second one see the items that follow.

    Parameters
    ----------
    dim : axis of the items

    Examples
    --------
    >>> Reverse()(torch.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[3.0, 2.0, 1.0]]
    >>> Reverse()(torch.tensor([[1.0, 2.0, 0.0]]), torch.tensor([2])).tolist()
    [[2.0, 1.0, 0.0]]
    """

    def __init__(self, dim: int = 1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Items, lengths: Tensor | None = None) -> Items:
        if isinstance(x, Ragged):
            starts, ends = x.offsets[:-1][x.row], x.offsets[1:][x.row]
            at = torch.arange(len(x.values), device=x.device)
            return x.like(x.values[starts + ends - 1 - at])
        if lengths is None:
            return x.flip(self.dim)
        if self.dim != 1:
            raise Unsupported(f"lengths are of axis 1, Reverse has dim={self.dim}")
        at = torch.arange(x.shape[1], device=x.device)
        place = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
        return x.take_along_dim(place.reshape(*place.shape, *[1] * (x.ndim - 2)), 1)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


def cut(out: Tensor, lengths: Tensor) -> Tensor:
    """Zeros behind the end of each row."""
    real = torch.arange(out.shape[1], device=out.device) < lengths[:, None]
    return out * real[..., None]
