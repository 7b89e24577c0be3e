"""Checkpoints: stop anywhere, even by ``kill -9``, and go on to the same bits."""

from __future__ import annotations

from pathlib import Path

from groundstate.compute.reduce import current
from groundstate.learn.callbacks import Callback, Run
from groundstate.store import Checkpoints


class Checkpoint(Callback):
    """Write everything a run needs to go on exactly, and pick it up again at the next start.

    A checkpoint holds θ and buffers, the rule's own state, optimiser, schedule, loss scaler,
    generator states, the states of the other callbacks and the place in the epoch; the data order
    is a function of the seed and the epoch. Files are written atomically, so a run killed in the
    middle of a write continues from the one before. It is called for a step or an epoch after
    all other callbacks, and never writes θ that is not finite. Of several processes the first writes
    and all read.

    Parameters
    ----------
    path : folder for the checkpoint files
    every_steps : write after this many steps; None writes at the end of epochs only
    every_epochs : write after this many epochs
    keep : how many files to keep
    resume : continue from the newest readable file in ``path``, if there is one

    Attributes
    ----------
    newest : the last file written or read, None before
    """

    def __init__(
        self,
        path: str | Path,
        *,
        every_steps: int | None = None,
        every_epochs: int = 1,
        keep: int = 2,
        resume: bool = True,
    ) -> None:
        if every_steps is not None and every_steps < 1:
            raise ValueError(f"every_steps must be at least 1 or None, got {every_steps}")
        if every_epochs < 1:
            raise ValueError(f"every_epochs must be at least 1, got {every_epochs}")
        self.files = Checkpoints(path, keep=keep)
        self.every_steps = every_steps
        self.every_epochs = every_epochs
        self.resume = resume
        self.newest: Path | None = None

    def on_begin(self, run: Run) -> None:
        if run.state is None or run.restore is None:
            raise TypeError(
                f"the solver {run.history.solver} cannot be resumed; use checkpoints with "
                "Stochastic"
            )
        if self.resume:
            found = self.files.latest()
            if found is not None:
                run.restore(found.state)
                self.newest = found.path

    def on_step(self, run: Run) -> None:
        if self.every_steps is not None and run.total_steps % self.every_steps == 0:
            self._write(run)

    def on_epoch(self, run: Run) -> None:
        if run.epoch % self.every_epochs == 0:
            self._write(run)

    def _write(self, run: Run) -> None:
        assert run.state is not None
        state = run.state()  # on all processes: it sums what they recorded
        if current().rank == 0:
            self.newest = self.files.write(run.total_steps, state)
