r"""Backpropagation through time: in full, cut off, or cut at random without bias.

For :math:`h_t = \varphi(w_1h_{t-1} + w_0x_t)`, :math:`E = w_2h_T` and :math:`\ell = (E-y)^2`

.. math:: \frac{d\ell}{dw_1} = 2(E-y)\,w_2\sum_{j=1}^{T} w_1^{T-j}
          \Bigl(\prod_{i=j}^{T}\varphi'(a_i)\Bigr) h_{j-1},

a sum over how far back an influence reaches. Truncation keeps its last terms.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn.recurrent.recurrent import Recurrent, State


class BPTT(nn.Module):
    r"""A recurrent network with gradients through time that are cut.

    Values are those of the network; only gradients differ.

    Parameters
    ----------
    net : a ``Recurrent`` in one direction
    truncate : k: the state is carried but gradients stop every k items (biased, memory O(k))
    random_truncate : p: at each item the gradient through the state is multiplied by
        Bernoulli(p)/p (unbiased)
    generator : source of these draws; None is a fixed seed

    Examples
    --------
    >>> net = Recurrent("rnn", 1, 2)
    >>> x = torch.ones(1, 6, 1)
    >>> torch.equal(BPTT(net, truncate=2)(x), net(x))
    True
    """

    def __init__(
        self,
        net: Recurrent,
        truncate: int | None = None,
        random_truncate: float | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if net.bidirectional:
            raise Unsupported("gradients through time are cut in one direction only")
        if truncate is not None and truncate < 1:
            raise ValueError(f"truncate counts items, at least 1, got {truncate}")
        if random_truncate is not None and not 0 < random_truncate <= 1:
            raise ValueError(f"random_truncate is a probability in (0, 1], got {random_truncate}")
        self.net, self.truncate, self.random_truncate = net, truncate, random_truncate
        self._draws = generator or torch.Generator().manual_seed(0)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)[0]

    def run(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Outputs ``(B, T, hidden)`` and the last state."""
        state = self.net.start(len(x)) if state is None else state
        size = 1 if self.random_truncate is not None else self.truncate or x.shape[1]
        outs = []
        for at, part in enumerate(x.split(size, 1)):
            if at and self.random_truncate is not None:
                keep = torch.rand(len(x), 1, generator=self._draws) < self.random_truncate
                state = _scaled(state, keep.to(x) / self.random_truncate)
            if at and self.truncate is not None and at * size % self.truncate == 0:
                state = _scaled(state, x.new_zeros(()))
            out, state = self.net.run(part, None, state)
            outs.append(out)
        return torch.cat(outs, 1), state

    def extra_repr(self) -> str:
        return f"truncate={self.truncate}, random_truncate={self.random_truncate}"


def _scaled(state: State, factor: Tensor) -> State:
    """The same values with gradients times ``factor``."""
    if isinstance(state, tuple):
        h, c = (s.detach() + factor * (s - s.detach()) for s in state)
        return h, c
    return state.detach() + factor * (state - state.detach())
