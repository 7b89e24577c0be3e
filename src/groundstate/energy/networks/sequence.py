r"""A sequence under a network, :math:`e(y\mid x) = -\sum_t\log p(y_t\mid y_{<t}, x)`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.sequences.autoregressive import Autoregressive, permutation
from groundstate.energy.sequences.chain import pad_increments
from groundstate.energy.sequences.step import StepState
from groundstate.energy.spaces import Finite, Sequence, Space, space_of_rows
from groundstate.errors import ShapeError
from groundstate.math.distributions.operations import draw, fresh


@runtime_checkable
class Cached(Protocol):
    """A network that answers one symbol at a time from what it remembers."""

    def start(self, rows: int, x: Any = None) -> Mapping[str, Any]:
        """The memory before the first symbol: tensors with leading axis B, or what picks rows by
        ``memory[index]`` like them."""
        ...

    def step(self, token: Tensor, cache: Mapping[str, Any]) -> tuple[Tensor, Mapping[str, Any]]:
        """Logits ``(B, K)`` after one more symbol ``(B,)``, or several ``(B, T)``, and the new
        memory."""
        ...


class _LastToken(nn.Module):
    """Logits from the token before alone (and a condition): the smallest causal network."""

    def __init__(self, k: int, d: int = 0) -> None:
        super().__init__()
        self.k, self.d = k, d
        g = torch.Generator().manual_seed(0)
        self.W = nn.Parameter(torch.randn(k + 1, k, generator=g))
        self.V = nn.Parameter(torch.randn(d, k, generator=g)) if d else None

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "d": self.d}

    def forward(self, tokens: Tensor, x: Tensor | None = None) -> Tensor:
        logits = self.W[tokens]  # (B, T, K)
        return logits if self.V is None or x is None else logits + (x @ self.V)[:, None]


@registered(
    r"e(y \mid x) = -\sum_t \log p(y_t \mid y_{<t}, x)",
    lambda: SequenceEnergy(_LastToken(3, 2), 3, 4, 2),
)
class SequenceEnergy(Autoregressive, Energy):
    r"""A causal network gives the next symbol, :math:`e(y\mid x) = -\sum_t\log p(y_t\mid y_{<t}, x)`.

    Every factor is a softmax, so Z = 1: log-probabilities are exact, draws independent, and lowering
    e on the data is maximum likelihood. The energy shifts the symbols itself: the network sees
    :math:`(\text{bos}, y_1, \dots, y_{T-1})` and answers :math:`y_1, \dots, y_T` in one pass.

    Parameters
    ----------
    net : module from tokens ``(B, T)`` int64 (and x) to logits ``(B, T, K)``, entry t of which may
        depend on tokens up to t alone. With ``start`` and ``step`` (see ``Cached``) symbols are
        answered one at a time; without them the prefix is run again
    k : number of symbols
    length : of the longest sequence; shorter rows pass ``lengths`` ``(B,)``
    x : what is given: a space, a shape, or None for none
    bos : symbol before the first; by default k, one behind the vocabulary
    ignore : a symbol of y that adds nothing, such as −100; the network sees ``bos`` in its place
    end : the symbol after which a sequence is over: behind it only ``end`` follows, for nothing

    Rows that are parts of longer sequences pass ``first`` ``(B,)``, the symbol before their own first.

    Examples
    --------
    >>> net = nn.Sequential(nn.Embedding(4, 8), nn.Linear(8, 3))
    >>> e = SequenceEnergy(net, 3, 4)
    >>> round((-e(y=e.spaces["y"].enumerate())).exp().sum().item(), 5)
    1.0
    """

    normalised = frozenset({"y"})
    context = ("lengths", "first")
    variable = "y"

    def __init__(
        self,
        net: nn.Module,
        k: int,
        length: int,
        x: int | Seq[int] | Space | None = None,
        *,
        bos: int | None = None,
        ignore: int | None = None,
        end: int | None = None,
    ) -> None:
        given = {} if x is None else {"x": space_of_rows(x)}
        super().__init__(**given, y=Sequence(Finite(k), length))
        self.k, self.length, self.ignore, self.end = k, length, ignore, end
        self.order = permutation(None, length)
        self.missing = frozenset() if ignore is None else frozenset({"y"})
        self.bos = k if bos is None else bos
        self.net = net

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "k": self.k, "length": self.length, "x": self.spaces.get("x"),
                "bos": self.bos, "ignore": self.ignore, "end": self.end}  # fmt: skip

    def logits(self, y: Tensor, x: Any = None, first: Tensor | None = None) -> Tensor:
        """Scores of every next symbol, ``(B, T, K)``, all positions in one pass."""
        tokens = self._shifted(y[:, :-1], first)
        if self.ignore is not None:
            tokens = torch.where(tokens == self.ignore, self.bos, tokens)
        return self._run(tokens, x)

    def _shifted(self, y: Tensor, first: Tensor | None) -> Tensor:
        """Symbols behind the one before the first, ``(B, T + 1)``."""
        if first is None:
            return nn.functional.pad(y, (1, 0), value=self.bos)
        return torch.cat([first[:, None], y], 1)

    def _run(self, tokens: Tensor, x: Any) -> Tensor:
        found: Tensor = self.net(tokens) if x is None else self.net(tokens, x)
        if found.shape != (*tokens.shape, self.k):
            raise ShapeError(
                f"the network gives {tuple(found.shape)} for tokens {tuple(tokens.shape)}; one row "
                f"of {self.k} logits per token is needed, {(*tokens.shape, self.k)}"
            )
        return found

    def forward(
        self,
        y: Tensor,
        x: Any = None,
        lengths: Tensor | None = None,
        first: Tensor | None = None,
    ) -> Tensor:
        e = self.token_energies(y, x, lengths, first).sum(1)
        if self.end is None:
            return e
        wrong = _over(y, self.end) & (y != self.end) & (y != self.ignore)
        return torch.where(wrong.any(1), math.inf, e)  # nothing follows the end

    def items(self, value: Tensor, lengths: Tensor | None = None) -> Tensor:
        return self._counts(value, lengths).sum(1)

    def _counts(self, y: Tensor, lengths: Tensor | None) -> Tensor:
        counts = torch.ones_like(y, dtype=torch.bool)
        if lengths is not None:
            counts = torch.arange(y.shape[1], device=y.device) < lengths[:, None]
        if self.ignore is not None:
            counts = counts & (y != self.ignore)
        return counts if self.end is None else counts & ~_over(y, self.end)

    def token_energies(
        self,
        y: Tensor,
        x: Any = None,
        lengths: Tensor | None = None,
        first: Tensor | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> Tensor:
        r""":math:`-\log p(y_t\mid y_{<t}, x)`, ``(B, T)``; 0 where nothing counts. Smoothing ε gives
        :math:`(1-\varepsilon)(-\log p(y_t)) + \frac{\varepsilon}{K}\sum_k(-\log p_k)`, a loss."""
        counts, length = self._counts(y, lengths), y.shape[1]
        if y.device.type == "cpu" and self.ignore is not None and not torch.compiler.is_compiling():
            used = int(counts.any(0).nonzero().max()) + 1 if bool(counts.any()) else 1
            y, counts = y[:, :used], counts[:, :used]  # nobody's symbols cost nothing
        target = torch.where(counts, y, -100)
        flat = nn.functional.cross_entropy(
            self.logits(torch.where(counts, y, 0), x, first).flatten(0, 1), target.flatten(),
            reduction="none", label_smoothing=label_smoothing,
        )  # fmt: skip
        return nn.functional.pad(flat.view(y.shape), (0, length - y.shape[1]))

    @offers.step("y")
    def step(
        self,
        state: StepState | None,
        x: Any = None,
        lengths: Tensor | None = None,
        first: Tensor | None = None,
    ) -> tuple[Tensor, StepState]:
        """Next-symbol energies −log p, ``(B, K)``; with nothing given a start has one row."""
        device = self.placement()[0]
        if state is None:
            given = next((v for v in (x, lengths, first) if v is not None), None)
            rows = 1 if given is None else len(given)
            state = StepState.start(rows, self.length, device=device)
            if isinstance(self.net, Cached):
                state = state.remember(**self.net.start(rows, x))
        if first is None:
            first = torch.full((state.rows,), self.bos, device=device)
        if isinstance(self.net, Cached):
            last = first if state.last is None else state.last
            logits, memory = self.net.step(last, state.memory)
            state = state.remember(**memory)
        else:
            before = state.value[:, : state.position]
            logits = self._run(torch.cat([first[:, None], before], 1), x)[:, -1]
        increments = -torch.log_softmax(logits, -1)
        if self.end is not None and state.position:
            over = (state.value[:, : state.position] == self.end).any(1, keepdim=True)
            symbols = torch.arange(self.k, device=device)
            stay = torch.where(symbols == self.end, 0.0, math.inf).to(increments.dtype)
            increments = torch.where(over, stay, increments)
        return pad_increments(increments, state.position, lengths), state

    def begin(
        self,
        prompt: Tensor | None,
        length: int,
        x: Any = None,
        lengths: Tensor | None = None,
        first: Tensor | None = None,
    ) -> tuple[Tensor, StepState]:
        """Next-symbol energies ``(B, K)`` behind a prompt ``(B, P)``, read in one pass, and the
        state of sequences of ``length`` symbols."""
        if prompt is None or not prompt.shape[1]:
            increments, state = self.step(None, x, lengths, first)
            rows = state.rows if prompt is None else len(prompt)
            if rows != state.rows:
                state = state.pick(torch.zeros(rows, dtype=torch.int64, device=increments.device))
                increments = increments.expand(rows, -1)
            return increments, replace(
                state, value=state.value[:, :length], order=tuple(range(length))
            )
        device = self.placement()[0]
        rows, known = prompt.shape
        state = StepState.start(rows, length, device=device)
        state.value[:, :known] = prompt
        tokens = self._shifted(prompt, first)
        if isinstance(self.net, Cached):
            logits, memory = self.net.step(tokens, self.net.start(rows, x))
            state = state.remember(**memory)
        else:
            logits = self._run(tokens, x)[:, -1]
        state = replace(state, position=known)
        return pad_increments(-torch.log_softmax(logits, -1), known, lengths), state

    @torch.no_grad()
    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None, x: Any = None
    ) -> dict[str, Tensor]:
        """Independent exact draws at T = 1, symbol by symbol, ``(n, L)``; with x one per row of it."""
        generator = fresh(generator)
        increments, state = self.step(None, x)
        if x is None:
            state = state.pick(torch.zeros(n, dtype=torch.int64, device=increments.device))
            increments = increments.expand(n, -1)
        while True:
            chosen = torch.distributions.Categorical(logits=-increments / T, validate_args=False)
            state = state.append(draw(chosen, 1, generator)[0])
            if state.done:
                return {"y": state.value}
            increments, state = self.step(state, x)


def _over(y: Tensor, end: int) -> Tensor:
    """Which positions stand behind the first end, ``(B, T)``."""
    hits = y == end
    return hits.cumsum(1) > hits.long()
