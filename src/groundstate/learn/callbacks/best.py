"""What comes back at the end of a run: θ of the best epoch, and what the rule had learned with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from groundstate.learn.callbacks.base import Run

State = dict[str, Any]


class Best:
    """The state of energy and rule at one moment of a run.

    A rule may learn with the energy (an encoder) or be carried along (chains, averages), so that one
    without the other is a model that never was.
    """

    def __init__(self) -> None:
        self.energy: State | None = None
        self.rule: State | None = None

    def __bool__(self) -> bool:
        return self.energy is not None

    def keep(self, run: Run) -> None:
        """Copy the present state."""
        self.energy, self.rule = _copied(run.energy), _copied(run.problem.rule)

    def put_back(self, run: Run) -> None:
        """Restore what was kept, if anything was."""
        if self.energy is None:
            return
        run.energy.load_state_dict(self.energy)
        if self.rule:
            run.problem.rule.load_state_dict(self.rule)

    def state(self) -> State:
        return {"kept": self.energy, "kept_rule": self.rule or None}

    def load(self, state: State) -> None:
        self.energy, self.rule = state["kept"], state.get("kept_rule")


@contextmanager
def as_answered(run: Run) -> Iterator[None]:
    """Inside the block the energy and the rule have the parameters that the run would leave now.

    A callback that replaces them at the end, as an average does, has ``applied()``.
    """
    with ExitStack() as stack:
        for callback in run.callbacks:
            applied = getattr(callback, "applied", None)
            if applied is not None and getattr(callback, "keep", False):
                stack.enter_context(applied())
        yield


def _copied(module: nn.Module) -> State:
    return {
        k: v.detach().clone() if isinstance(v, Tensor) else v
        for k, v in module.state_dict().items()
    }
