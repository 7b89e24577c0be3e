r"""Networks that read a whole sequence and answer once: a body, a readout, a linear map."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.compute.rows import Ragged
from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.architectures import architecture, rows
from groundstate.nn.attention import masks
from groundstate.nn.attention.positions import SinusoidalPositions
from groundstate.nn.attention.transformer import TransformerEncoder
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.recurrent.recurrent import Recurrent
from groundstate.nn.recurrent.tcn import TCN

READOUTS = ("last", "mean", "max", "attention")


class SequenceNetwork(nn.Module):
    r"""One answer for a sequence, :math:`f(x) = W\,\rho(h_1, \dots, h_T) + b`, with states h of a body.

    ========= ==============================================================================
    last      :math:`h_T`, of a body that reads both ways also the first of the way back
    mean, max over the items of the sequence
    attention :math:`\sum_ta_th_t`, :math:`a = \operatorname{softmax}(v^\top h_t/\sqrt H)`
    ========= ==============================================================================

    Rows are ``Ragged``, or a tensor ``(B, T, in_features)`` with ``lengths``; items behind the end of a
    row are never seen, and a row without items is answered by b.

    Parameters
    ----------
    body : from ``(B, T, in_features)`` and lengths to states ``(B, T, body.out_features)``, such as
        ``Recurrent``, ``TCN`` or ``TransformerBody``
    num_classes : size of f
    readout : see above
    dropout : of what is read out, in training
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = SequenceNetwork(Recurrent("gru", 3, 8), 2, "mean")
    >>> net(Ragged.of([torch.ones(4, 3), torch.ones(2, 3)])).shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        body: nn.Module,
        num_classes: int,
        readout: str = "last",
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if readout not in READOUTS:
            raise Unsupported(f"readout {readout!r} is not known; use one of {', '.join(READOUTS)}")
        self.num_classes, self.readout, self.dropout = num_classes, readout, dropout
        self.body = body
        wide: int = body.out_features  # type: ignore[assignment]
        self._back = wide // 2 if getattr(body, "bidirectional", False) else 0
        self.score = nn.Parameter(torch.zeros(wide)) if readout == "attention" else None
        self.head = init_(linear(wide, num_classes), generator=generator)

    def forward(self, x: Tensor | Ragged, lengths: Tensor | None = None) -> Tensor:
        if isinstance(x, Ragged):
            if x.equal:  # nothing to fill up, nothing to look up
                x = x.padded()
            else:
                lengths = x.lengths
                x = x.padded(length=max(1, int(lengths.max())) if len(lengths) else 1)
        if lengths is None:
            if x.ndim == 3 and x.shape[1] == 0:
                raise ShapeError(f"sequences need at least one item, got {tuple(x.shape)}")
            h = self._read(self.body(x), None)
        else:
            some = lengths.clamp_min(1)
            if x.device.type == "cpu" and len(x) and not torch.compiler.is_compiling():
                x = x[
                    :, : int(some.max())
                ]  # padding costs time, and sums of another length round otherwise
            h = self._read(self.body(x, some), some) * (lengths > 0)[:, None]
        out: Tensor = self.head(F.dropout(h, self.dropout, self.training))
        return out

    def _read(self, h: Tensor, lengths: Tensor | None) -> Tensor:
        """``(B, T, H)`` to ``(B, H)``."""
        if self.readout == "last":
            return self._last(h, lengths)
        real = None
        if lengths is not None:
            real = (torch.arange(h.shape[1], device=h.device) < lengths[:, None])[..., None]
        if self.readout == "mean":
            return h.mean(1) if real is None else (h * real).sum(1) / lengths[:, None]  # type: ignore[index]
        if self.readout == "max":
            return (h if real is None else h.masked_fill(~real, -torch.inf)).amax(1)
        score = (h @ self.score / h.shape[-1] ** 0.5)[..., None]  # type: ignore[operator]
        if real is not None:
            score = score.masked_fill(~real, -torch.inf)
        return (score.softmax(1) * h).sum(1)

    def _last(self, h: Tensor, lengths: Tensor | None) -> Tensor:
        if lengths is None:
            end = h[:, -1]
        else:
            end = h.take_along_dim((lengths - 1)[:, None, None], 1)[:, 0]
        back = self._back  # where the states of the way back begin
        return end if not back else torch.cat([end[:, :back], h[:, 0, back:]], 1)

    def extra_repr(self) -> str:
        return f"num_classes={self.num_classes}, readout={self.readout!r}"


class TransformerBody(nn.Module):
    """Items as tokens: a linear map, positions, and blocks in which all items see each other.

    Parameters
    ----------
    in_features, dim, heads, layers, dropout : sizes, see ``TransformerEncoder``
    generator : source of the initial weights; None is a fixed seed
    """

    def __init__(
        self,
        in_features: int,
        dim: int = 64,
        heads: int = 4,
        layers: int = 2,
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"dim={dim} must be a multiple of heads={heads}")
        self.in_features, self.dim, self.heads = in_features, dim, heads
        self.layers, self.dropout = layers, dropout
        self.out_features = dim
        generator = generator or torch.Generator().manual_seed(0)
        self.embed = init_(linear(in_features, dim), generator=generator)
        self.positions = SinusoidalPositions(dim)
        self.encoder = TransformerEncoder(
            dim, heads, layers, 2 * dim, "gelu", norm_first=True, dropout=dropout,
            generator=generator,
        )  # fmt: skip

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        if x.ndim != 3 or x.shape[-1] != self.in_features:
            raise ShapeError(
                f"a transformer takes (batch, length, {self.in_features}), got {tuple(x.shape)}"
            )
        mask = None if lengths is None else masks.padding(lengths, x.shape[1])
        h = self.positions(self.embed(x))
        out: Tensor = self.encoder(F.dropout(h, self.dropout, self.training), mask)
        return out


_INPUTS, _SMALL = rows(5, 3), {"in_features": 3, "num_classes": 2, "hidden": 4}


@architecture("gru", kind="sequence", shape=(100, 1), inputs=_INPUTS, small=_SMALL)
def gru(
    in_features: int = 1, num_classes: int = 1, hidden: int = 64, layers: int = 1, *,
    readout: str = "last", bidirectional: bool = False, dropout: float = 0.0,
    update_bias: float = 0.0, generator: torch.Generator | None = None,
) -> SequenceNetwork:  # fmt: skip
    """Gated recurrent units and a readout."""
    net = Recurrent("gru", in_features, hidden, layers, bidirectional, update_bias=update_bias,
                    dropout=dropout, generator=generator)  # fmt: skip
    return SequenceNetwork(net, num_classes, readout, dropout=dropout, generator=generator)


@architecture("lstm", kind="sequence", shape=(100, 1), inputs=_INPUTS, small=_SMALL)
def lstm(
    in_features: int = 1, num_classes: int = 1, hidden: int = 64, layers: int = 1, *,
    readout: str = "last", bidirectional: bool = False, dropout: float = 0.0,
    forget_bias: float = 1.0, generator: torch.Generator | None = None,
) -> SequenceNetwork:  # fmt: skip
    """Long short-term memory and a readout."""
    net = Recurrent("lstm", in_features, hidden, layers, bidirectional, forget_bias=forget_bias,
                    dropout=dropout, generator=generator)  # fmt: skip
    return SequenceNetwork(net, num_classes, readout, dropout=dropout, generator=generator)


@architecture("rnn", kind="sequence", shape=(100, 1), inputs=_INPUTS, small=_SMALL)
def rnn(
    in_features: int = 1, num_classes: int = 1, hidden: int = 64, layers: int = 1, *,
    readout: str = "last", bidirectional: bool = False, dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> SequenceNetwork:  # fmt: skip
    """Simple recurrent units and a readout."""
    net = Recurrent("rnn", in_features, hidden, layers, bidirectional, dropout=dropout,
                    generator=generator)  # fmt: skip
    return SequenceNetwork(net, num_classes, readout, dropout=dropout, generator=generator)


@architecture("tcn", kind="sequence", shape=(100, 1), inputs=_INPUTS, small=_SMALL)
def tcn(
    in_features: int = 1, num_classes: int = 1, hidden: int = 64, layers: int = 5, *,
    kernel_size: int = 3, readout: str = "last", dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> SequenceNetwork:  # fmt: skip
    """Causal convolutions with gaps 1, 2, 4, … and a readout."""
    net = TCN(in_features, hidden, layers, kernel_size, dropout=dropout, generator=generator)
    return SequenceNetwork(net, num_classes, readout, dropout=dropout, generator=generator)


@architecture(
    "transformer", kind="sequence", shape=(100, 1), inputs=_INPUTS, small={**_SMALL, "heads": 2}
)
def transformer(
    in_features: int = 1, num_classes: int = 1, hidden: int = 64, layers: int = 2, *,
    heads: int = 4, readout: str = "mean", dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> SequenceNetwork:  # fmt: skip
    """Attention among all items, with positions, and a readout."""
    net = TransformerBody(in_features, hidden, heads, layers, dropout=dropout, generator=generator)
    return SequenceNetwork(net, num_classes, readout, dropout=dropout, generator=generator)
