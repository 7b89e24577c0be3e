r"""What the gates of a recurrent network do while it reads a sequence."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.recurrent.recurrent import Recurrent, State

NAMES = {"rnn": ("h",), "lstm": ("i", "f", "g", "o", "c", "h"), "gru": ("r", "u", "n", "h")}


def gates(net: Recurrent, x: Tensor, layer: int = 0) -> dict[str, Tensor]:
    r"""Gates, memory and states of one layer, item by item.

    .. math::
        \text{lstm: } & c_t = f\odot c_{t-1} + i\odot g,\quad h_t = o\odot\tanh c_t \\
        \text{gru: } & h_t = u\odot h_{t-1} + (1-u)\odot n

    Written out with the weights of the network; its fused kernel gives the same states.

    Parameters
    ----------
    net : in one direction
    x : rows ``(B, T, in_features)``
    layer : which of the stacked ones

    Returns
    -------
    dict
        ``(B, T, hidden)`` each. lstm: input i, forget f, candidate g, output o, memory c, state h;
        gru: reset r, update u, candidate n, state h; rnn: state h.

    Examples
    --------
    >>> seen = gates(Recurrent("lstm", 3, 4, forget_bias=1.0), torch.zeros(2, 5, 3))
    >>> list(seen), bool((seen["f"] > 0.5).all())
    (['i', 'f', 'g', 'o', 'c', 'h'], True)
    """
    if net.bidirectional:
        raise Unsupported(
            "gates are shown in one direction; pass a network that is not bidirectional"
        )
    if not 0 <= layer < net.layers:
        raise ValueError(f"layer must be 0 to {net.layers - 1}, got {layer}")
    if x.ndim != 3 or x.shape[-1] != net.in_features:
        raise ShapeError(f"gates takes (batch, length, {net.in_features}), got {tuple(x.shape)}")
    start = net.start(len(x))
    for below in range(layer + 1):
        seen = _layer(net, x, below, start)
        x = seen["h"]
    return seen


def _layer(net: Recurrent, x: Tensor, layer: int, start: State) -> dict[str, Tensor]:
    own = dict(net.core.named_parameters())
    W, U = own[f"weight_ih_l{layer}"], own[f"weight_hh_l{layer}"]
    given = F.linear(x, W, own[f"bias_ih_l{layer}"])  # (B, T, gates·hidden)
    b = own.get(f"bias_hh_l{layer}", W.new_zeros(len(W)))  # ResetFirstGRU has one bias
    h, c = (v[layer] for v in (start if isinstance(start, tuple) else (start, start)))
    rows: dict[str, list[Tensor]] = {name: [] for name in NAMES[net.cell]}
    for t in range(x.shape[1]):
        if net.cell == "rnn":
            values = [torch.tanh(given[:, t] + F.linear(h, U, b))]
        elif net.cell == "lstm":
            i, f, g, o = (given[:, t] + F.linear(h, U, b)).chunk(4, -1)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            c = f * c + i * g
            values = [i, f, g, o, c, o * c.tanh()]
        else:
            r, u, n = _gru(net, given[:, t], h, U, b)
            values = [r, u, n, u * h + (1 - u) * n]
        h = values[-1]
        for name, value in zip(rows, values, strict=True):
            rows[name].append(value)
    return {name: torch.stack(values, 1) for name, values in rows.items()}


def _gru(net: Recurrent, given: Tensor, h: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    i_r, i_u, i_n = given.chunk(3, -1)
    U_r, U_u, U_n = U.chunk(3)
    b_r, b_u, b_n = b.chunk(3)
    r = torch.sigmoid(i_r + F.linear(h, U_r, b_r))
    u = torch.sigmoid(i_u + F.linear(h, U_u, b_u))
    if net.reset_after:
        return r, u, torch.tanh(i_n + r * F.linear(h, U_n, b_n))
    return r, u, torch.tanh(i_n + F.linear(r * h, U_n, b_n))
