r"""Locally normalised energies, :math:`e(x) = -\sum_i\log p(x_{\pi(i)} \mid x_{\pi(<i)})`."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.exact import LIMIT
from groundstate.energy.registering import registered
from groundstate.energy.sequences.autoregressive import Autoregressive, permutation
from groundstate.energy.sequences.chain import pad_increments
from groundstate.energy.sequences.step import StepState
from groundstate.energy.spaces import Finite, Sequence
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.distributions.operations import draw, fresh
from groundstate.math.info.free_energy import free_energy


class Conditioner(Protocol):
    """What gives the next-symbol distributions: all of a sequence at once, and one step at a time."""

    def __call__(self, symbols: Tensor) -> Tensor:
        """Log-probabilities ``(B, L, K)`` of every factor from ``symbols`` ``(B, L)``."""
        ...

    def advance(self, memory: Tensor, symbols: Tensor | None) -> tuple[Tensor, Tensor]:
        """Log-probabilities ``(B, K)`` of the next factor, and the new memory ``(B, ...)``."""
        ...

    def start(self, rows: int) -> Tensor:
        """The memory before the first symbol, ``(B, ...)``."""
        ...


class Recurrent(nn.Module):
    r"""A gated recurrent net, :math:`h_i = \mathrm{GRU}(h_{i-1}, x_{i-1})`,
    :math:`p(x_i\mid x_{<i}) = \mathrm{softmax}(Vh_i + c)`.
    """

    def __init__(self, k: int, hidden: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.k, self.hidden = k, hidden
        self.embed = nn.Parameter(torch.randn(k + 1, 3 * hidden, generator=generator) * 0.5)
        self.recur = nn.Parameter(
            torch.randn(3 * hidden, hidden, generator=generator) / hidden**0.5
        )
        self.V = nn.Parameter(torch.randn(k, hidden, generator=generator) / hidden**0.5)
        self.c = nn.Parameter(torch.zeros(k))

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "hidden": self.hidden}

    def start(self, rows: int) -> Tensor:
        return self.V.new_zeros(rows, self.hidden)

    def advance(self, memory: Tensor, symbols: Tensor | None) -> tuple[Tensor, Tensor]:
        if symbols is None:
            symbols = torch.full((memory.shape[0],), self.k, device=memory.device)  # start symbol
        i_r, i_u, i_n = self.embed[symbols].chunk(3, -1)
        h_r, h_u, h_n = (memory @ self.recur.T).chunk(3, -1)
        update = torch.sigmoid(i_u + h_u)
        new = torch.tanh(i_n + torch.sigmoid(i_r + h_r) * h_n)
        memory = (1 - update) * new + update * memory
        return torch.log_softmax(memory @ self.V.T + self.c, -1), memory

    def forward(self, symbols: Tensor) -> Tensor:
        memory, previous, rows = self.start(symbols.shape[0]), None, []
        for i in range(symbols.shape[1]):
            logp, memory = self.advance(memory, previous)
            rows.append(logp)
            previous = symbols[:, i]
        return torch.stack(rows, 1)


class Tables(nn.Module):
    """One table of logits per factor: ``(K^i, K)`` for the factor with i earlier symbols."""

    def __init__(self, k: int, length: int) -> None:
        super().__init__()
        self.k, self.length = k, length
        self.logits = nn.ParameterList([torch.zeros(k**i, k) for i in range(length)])

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "length": self.length}

    def start(self, rows: int) -> Tensor:
        return torch.zeros(rows, 2, dtype=torch.int64, device=self.logits[0].device)  # code, i

    def advance(self, memory: Tensor, symbols: Tensor | None) -> tuple[Tensor, Tensor]:
        code, i = memory.unbind(1)
        if symbols is not None:
            code, i = code * self.k + symbols, i + 1
        logits: Tensor = self.logits[int(i[0])]
        return torch.log_softmax(logits[code], -1), torch.stack((code, i), 1)

    def forward(self, symbols: Tensor) -> Tensor:
        code, rows = torch.zeros_like(symbols[:, 0]), []
        for i, logits in enumerate(self.logits):
            rows.append(torch.log_softmax(logits[code], -1))
            code = code * self.k + symbols[:, i]
        return torch.stack(rows, 1)


@registered(r"e(x) = -\sum_i \log p(x_i \mid x_{<i})", lambda: ChainRuleEnergy(3, 4, net=8))
class ChainRuleEnergy(Autoregressive, Energy):
    r"""A sequence as a product of next-symbol distributions,
    :math:`e(x) = -\sum_i\log p(x_{\pi(i)}\mid x_{\pi(1)},\dots,x_{\pi(i-1)})`.

    Every factor is normalised, so the whole is: :math:`\sum_x e^{-e(x)} = 1`, log-probabilities
    are exact and draws are independent. Any order π of the factors is valid. One net answers all
    positions: but for ``"table"`` the number of parameters does not depend on the length.

    Parameters
    ----------
    k : number of symbols
    length : items of the longest sequence; shorter rows pass ``lengths`` ``(B,)``
    net : size of the hidden state of a recurrent net, ``"table"``, or a ``Conditioner`` module
    order : the permutation π; by default 0, 1, 2, ...
    generator : source of the initial weights

    Examples
    --------
    >>> e = ChainRuleEnergy(3, 4)
    >>> strings = e.spaces["x"].enumerate()
    >>> round(e.log_prob(strings).exp().sum().item(), 5)
    1.0
    >>> e.sample(2).shape, e.conditional(strings[:5, :2]).probs.shape
    (torch.Size([2, 4]), torch.Size([5, 3]))
    """

    normalised = frozenset({"x"})
    variable = "x"
    context = ("lengths",)

    def __init__(
        self,
        k: int,
        length: int,
        net: int | str | nn.Module = 16,
        order: Seq[int] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Sequence(Finite(k), length))
        self.k, self.length = k, length
        self.order = permutation(order, length)
        self.kind = net if isinstance(net, int | str) else None
        if net == "table":
            if k**length > LIMIT:
                raise Unsupported(f"tables over {k}^{length} strings are too large; use a net")
            self.net: Any = Tables(k, length)
        elif isinstance(net, int):
            self.net = Recurrent(k, net, generator)
        elif isinstance(net, nn.Module):
            self.net = net
        else:
            raise ValueError(f"net must be a hidden size, 'table' or a module, got {net!r}")

    @classmethod
    def from_joint(cls, joint: Tensor, order: Seq[int] | None = None) -> ChainRuleEnergy:
        """The exact factors of a table of probabilities with one axis of size K per position."""
        if len(set(joint.shape)) != 1:
            raise ShapeError(f"every axis needs the same K symbols, got {tuple(joint.shape)}")
        energy = cls(joint.shape[0], joint.ndim, "table", order).to(joint.dtype)
        p = (joint / joint.sum()).permute(*energy.order)
        for i, logits in enumerate(energy.net.logits):
            marginal = p.sum(tuple(range(i + 1, p.ndim))) if i + 1 < p.ndim else p
            logits.data.copy_(marginal.reshape(-1, energy.k).log().clamp_min(-1e4))
        return energy

    def config(self) -> dict[str, Any]:
        net = self.net if self.kind is None else self.kind
        return {"k": self.k, "length": self.length, "net": net, "order": list(self.order)}

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        symbols = x if self.order == tuple(range(self.length)) else x[:, self.order]
        if lengths is not None:
            where = torch.tensor(self.order, device=x.device)
            inside = where < lengths[:, None]  # (B, L)
            symbols = torch.where(inside, symbols, 0)
        logp = self.net(symbols).gather(2, symbols.unsqueeze(2)).squeeze(2)  # (B, L)
        return -(logp if lengths is None else torch.where(inside, logp, 0.0)).sum(-1)

    @offers.step("x")
    def step(
        self, state: StepState | None, lengths: Tensor | None = None
    ) -> tuple[Tensor, StepState]:
        """Next-symbol energies −log p, ``(B, K)``; without ``lengths`` a start has one row."""
        if state is None:
            rows = 1 if lengths is None else lengths.shape[0]
            device = self.placement()[0]
            state = StepState.start(rows, self.length, self.order, device)
            state = state.remember(net=self.net.start(rows))
        logp, memory = self.net.advance(state.memory["net"], state.last)
        at = self.order[state.position]
        return pad_increments(-logp, at, lengths), state.remember(net=memory)

    @offers.log_partition("x")
    def total(self, T: float = 1.0, lengths: Tensor | None = None) -> Tensor:
        """0 at T = 1; other temperatures list all strings where there are few enough."""
        device, dtype = self.placement()
        if T == 1:
            rows = 1 if lengths is None else lengths.shape[0]
            return torch.zeros(rows, device=device, dtype=dtype)
        if self.k**self.length > LIMIT or lengths is not None:
            raise Unsupported(
                f"log Z of {self.k}^{self.length} strings at T={T} is not known; it is 0 at T=1"
            )
        strings = self.spaces["x"].enumerate(device)
        return -free_energy(self(x=strings), T).reshape(1) / T

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Independent exact draws at T = 1, symbol by symbol, ``(n, L)``."""
        if T != 1:
            raise Unsupported(f"ancestral draws are exact at T=1 only, got T={T}")
        generator = fresh(generator)
        with torch.no_grad():
            increments, state = self.step(None)
            state = state.pick(torch.zeros(n, dtype=torch.int64, device=increments.device))
            increments = increments.expand(n, -1)
            while True:
                distribution = torch.distributions.Categorical(
                    logits=-increments, validate_args=False
                )
                state = state.append(draw(distribution, 1, generator)[0])
                if state.done:
                    return {"x": state.value}
                increments, state = self.step(state)
