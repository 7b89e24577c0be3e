r"""The gated unit whose reset comes before the recurrent map."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ResetFirstGRU(nn.Module):
    r"""A layer of gated recurrent units that forget before they look back.

    .. math:: r = \sigma(W_rx + U_rh + b_r),\quad u = \sigma(W_ux + U_uh + b_u),\quad
              \tilde h = \tanh(W_hx + U_h(r\odot h) + b_h),\quad h' = u\odot h + (1-u)\odot\tilde h

    ``torch.nn.GRU`` has :math:`r\odot(U_hh + b)` instead, in one fused kernel; this one is a loop
    over items and slower. Weights are stacked in the order r, u, h and bear torch's names, with
    torch's shapes, ``(3·hidden, ·)``.

    Parameters
    ----------
    in_features, hidden : sizes
    """

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.hidden = in_features, hidden
        self.weight_ih_l0 = nn.Parameter(torch.empty(3 * hidden, in_features))
        self.weight_hh_l0 = nn.Parameter(torch.empty(3 * hidden, hidden))
        self.bias_ih_l0 = nn.Parameter(torch.empty(3 * hidden))

    def forward(self, x: Tensor, h: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs ``(B, T, hidden)`` and the last state ``(1, B, hidden)`` from ``(1, B, hidden)``;
        behind its end a row's state stays."""
        given = F.linear(x, self.weight_ih_l0, self.bias_ih_l0)  # (B, T, 3·hidden)
        recur, last = self.weight_hh_l0.split((2 * self.hidden, self.hidden))
        state, rows = h[0], []
        for t in range(x.shape[1]):
            i_gates, i_new = given[:, t].tensor_split((2 * self.hidden,), -1)
            r, u = torch.sigmoid(i_gates + state @ recur.T).chunk(2, -1)
            new = u * state + (1 - u) * torch.tanh(i_new + (r * state) @ last.T)
            state = new if lengths is None else new.where((t < lengths)[:, None], state)
            rows.append(state)
        return torch.stack(rows, 1), state[None]
