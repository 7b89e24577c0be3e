r"""The state of a sequence that is built symbol by symbol, for the ability ``step``.

The loop that greedy search, beam search and ancestral sampling share::

    increments, state = energy.ability("step", "x")(None, **given)  # (B, K)
    while True:
        symbols = choose(increments)                  # (B,)
        state = state.append(symbols)
        if state.done:
            break
        increments, state = energy.ability("step", "x")(state, **given)

The chosen increments add up to the energy of ``state.value``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class StepState:
    """A batch of partly built sequences.

    Attributes
    ----------
    value : ``(B, L)`` int64; positions that are not decided hold 0
    position : number of decided symbols
    order : the position that each step decides, a permutation of 0..L-1
    memory : what the energy carries along, tensors with leading axis B, or what picks rows by
        ``memory[index]`` like them
    """

    value: Tensor
    position: int = 0
    order: tuple[int, ...] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def start(
        cls,
        rows: int,
        length: int,
        order: tuple[int, ...] = (),
        device: torch.device | None = None,
    ) -> StepState:
        value = torch.zeros(rows, length, dtype=torch.int64, device=device)
        return cls(value, order=order or tuple(range(length)))

    @property
    def done(self) -> bool:
        return self.position >= self.value.shape[1]

    @property
    def rows(self) -> int:
        return self.value.shape[0]

    @property
    def last(self) -> Tensor | None:
        """The symbol decided last, ``(B,)``, None at the start."""
        return self.value[:, self.order[self.position - 1]] if self.position else None

    def append(self, symbols: Tensor) -> StepState:
        """Decide the next symbol of every row, ``symbols`` ``(B,)``."""
        value = self.value.clone()
        value[:, self.order[self.position]] = symbols
        return replace(self, value=value, position=self.position + 1)

    def filled(self, symbol: int) -> StepState:
        """Decide all that is left by one symbol."""
        value = self.value.clone()
        value[:, list(self.order[self.position :])] = symbol
        return replace(self, value=value, position=self.value.shape[1])

    def pick(self, index: Tensor) -> StepState:
        """Keep or repeat rows, ``index`` ``(B',)``; the given values must be picked alike."""
        memory = {name: v[index] for name, v in self.memory.items()}
        return replace(self, value=self.value[index], memory=memory)

    def remember(self, **memory: Any) -> StepState:
        return replace(self, memory={**self.memory, **memory})
