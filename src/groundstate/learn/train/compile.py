"""``torch.compile`` around the networks of an energy, with a way back."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn

from groundstate.energy.base import Energy

_NOTHING = nullcontext()


class Whole(nn.Module):
    """A module as the compiler must see it.

    Frames of torch's own files are never compiled, so ``compile()`` of an ``nn.Sequential`` would
    silently do nothing; here the frame is ours and what it calls is inlined.
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner._call_impl(*args, **kwargs)


class Compiled:
    """Compiles the networks inside an energy in place while a run lasts.

    An energy calls its networks as modules, so each child with parameters is compiled as one
    graph; an energy without children is compiled itself. Batches of another size than the usual
    one, such as the last of an epoch, run uncompiled instead of compiling again. When the compiler
    fails, one warning says why and the run goes on without it.

    Parameters
    ----------
    energy : what is trained
    wish : False, True, or a mode of ``torch.compile`` such as ``"reduce-overhead"``
    """

    def __init__(self, energy: Energy, wish: bool | str) -> None:
        self.forwards: list[tuple[nn.Module, Any]] = []
        self.rows: int | None = None
        self.graphs = wish == "reduce-overhead"
        if not wish:
            return
        children = [m for m in energy.children() if any(True for _ in m.parameters())]
        options: dict[str, Any] = {"dynamic": False}
        if isinstance(wish, str):
            options["mode"] = wish
        for module in children or [energy]:
            whole = Whole(module)
            whole.compile(**options)
            self.forwards.append((module, whole._compiled_call_impl))

    @property
    def active(self) -> bool:
        return bool(self.forwards)

    def batch(self, rows: int) -> AbstractContextManager[None]:
        """Around the forward pass of a batch; outside of it nothing is compiled."""
        self.rows = rows if self.rows is None else self.rows
        return self._swapped() if self.forwards and rows == self.rows else _NOTHING

    @contextmanager
    def _swapped(self) -> Iterator[None]:
        if self.graphs:
            torch.compiler.cudagraph_mark_step_begin()
        for module, forward in self.forwards:
            module._compiled_call_impl = forward
        try:
            yield
        finally:
            for module, _ in self.forwards:
                module._compiled_call_impl = None

    def give_up(self, error: Exception) -> None:
        """Warn once and run uncompiled from here on."""
        self.forwards = []
        reason = " ".join(line.strip() for line in str(error).strip().splitlines()[:2])
        warnings.warn(
            f"torch.compile failed ({type(error).__name__}: {reason}); training goes on uncompiled",
            RuntimeWarning,
            stacklevel=2,
        )
