"""Fits that run while the page is open: their curves, and a hand on them (pause, stop)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from groundstate.errors import GroundstateError
from groundstate.learn.callbacks import Callback, Run
from groundstate.studio.loaded import NotHere, Shelf

State = Literal["running", "paused", "done", "stopped", "failed"]


@dataclass
class Job:
    """One fit in a thread of its own.

    Attributes
    ----------
    id, title, settings : what is fitted
    curve : objective after each epoch
    epochs : how many there will be at most
    key : of the fitted model on the shelf, when it is there
    error : the sentence of what went wrong
    """

    id: str
    title: str
    example: str
    settings: dict[str, float]
    curve: list[float] = field(default_factory=list)
    epochs: int = 0
    key: str | None = None
    error: str | None = None
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    stopping: bool = False
    finished: bool = False
    go: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        self.go.set()

    @property
    def state(self) -> State:
        if self.error is not None:
            return "failed"
        if self.finished:
            return "stopped" if self.stopping else "done"
        return "running" if self.go.is_set() else "paused"

    def pause(self) -> None:
        """Wait after the epoch that runs."""
        if not self.finished:
            self.go.clear()

    def resume(self) -> None:
        """Go on."""
        self.go.set()

    def stop(self) -> None:
        """End after the epoch that runs; what was learned so far is kept."""
        if not self.finished:
            self.stopping = True
            self.go.set()


class Watch(Callback):
    """Writes the curve of a job, waits while it is paused, and ends it when it is stopped."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def on_begin(self, run: Run) -> None:
        self.job.epochs = run.max_epochs

    def on_epoch(self, run: Run) -> bool | None:
        job = self.job
        job.curve.append(float(run.objective))
        job.seconds = time.monotonic() - job.began
        job.go.wait()
        return job.stopping or None


# (callbacks) -> fitted model, its rows and their labels
Fit = Callable[[list[Callback]], tuple[Any, Any, Any]]


class Jobs:
    """The fits of this session, newest last."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._jobs: dict[str, Job] = {}
        self._threads: dict[str, threading.Thread] = {}

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def __getitem__(self, id: str) -> Job:
        if id not in self._jobs:
            raise NotHere(id)
        return self._jobs[id]

    def start(
        self, title: str, name: str, example: str, settings: dict[str, float], fit: Fit
    ) -> Job:
        """Fit in the background; the model goes on the shelf when it is ready."""
        job = Job(str(len(self._jobs) + 1), title, example, settings)
        self._jobs[job.id] = job
        thread = threading.Thread(target=self._run, args=(job, name, fit), daemon=True)
        self._threads[job.id] = thread
        thread.start()
        return job

    def wait(self, id: str, timeout: float | None = None) -> Job:
        """The job when its thread has ended."""
        self._threads[id].join(timeout)
        return self._jobs[id]

    def _run(self, job: Job, name: str, fit: Fit) -> None:
        try:
            model, X, y = fit([Watch(job)])
            model.callbacks = None  # what watched the fit is no part of the model
            job.key = self.shelf.put(model, name, f"fitted here: {job.title}", X, y).key
        except (GroundstateError, ValueError, ArithmeticError) as error:
            job.error = " ".join(str(error).split())
        except BaseException as error:
            job.error = f"the fit failed: {type(error).__name__}: {error}"
            raise
        finally:
            job.seconds = time.monotonic() - job.began
            job.finished = True
