"""One row of numbers per epoch: kept as a table, or sent to a file or a tracking tool."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

from groundstate.errors import Unsupported
from groundstate.learn.callbacks.base import Callback, Run


class Logger(Callback):
    """Base of loggers: ``write`` gets one row per epoch.

    A row holds ``epoch``, ``steps``, ``objective``, ``seconds`` per step, ``lr`` and everything that
    callbacks before this one put into ``run.logs``.
    """

    def on_epoch(self, run: Run) -> None:
        seconds = run.history.seconds
        row: dict[str, float] = {"epoch": run.epoch, "steps": run.total_steps}
        row["objective"] = run.objective
        if seconds:
            row["seconds"] = seconds[-1]
        if not math.isnan(run.lr):
            row["lr"] = run.lr
        self.write({**row, **run.logs})

    def write(self, row: dict[str, float]) -> None:
        """Take one row."""
        raise Unsupported(f"{type(self).__name__} does not say where rows go; override write")


class HistoryTable(Logger):
    """The run as a table in memory.

    Attributes
    ----------
    rows : list of dict

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.tensor([[-1.0], [1.0]]), "y": torch.tensor([0, 1])}
    >>> table = HistoryTable()
    >>> solver = Stochastic(max_epochs=3, tol=None)
    >>> _ = fit(LinearEnergy(1, 2), data, SoftMin(), solver, callbacks=[table])
    >>> [row["epoch"] for row in table.rows]
    [1, 2, 3]
    """

    def on_begin(self, run: Run) -> None:
        self.rows: list[dict[str, float]] = []

    def write(self, row: dict[str, float]) -> None:
        self.rows.append(row)

    def frame(self) -> Any:
        """The rows as a pandas DataFrame with the epochs as index."""
        pandas = _needed("pandas", "HistoryTable.frame")
        return pandas.DataFrame(self.rows).set_index("epoch")

    def state(self) -> dict[str, Any]:
        return {"rows": [dict(row) for row in self.rows]}

    def load(self, state: dict[str, Any]) -> None:
        self.rows = [dict(row) for row in state["rows"]]


class _FileLogger(Logger):
    """Rows appended to a text file; a resumed run goes on after its last row."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def on_begin(self, run: Run) -> None:
        self._before = self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._written = 0
        self._open("w")

    def _open(self, mode: str) -> None:
        self._file = self.path.open(mode, newline="", encoding="utf-8")

    def _keep(self, lines: int) -> None:
        """Go on after ``lines`` lines: what an interrupted run wrote later is cut off."""
        self._file.close()
        kept = self._before.splitlines(keepends=True)[:lines]
        self.path.write_text("".join(kept), encoding="utf-8", newline="")
        self._open("a")

    def on_end(self, run: Run) -> None:
        self._file.close()

    def state(self) -> dict[str, Any]:
        return {"rows": self._written}


class CSVLogger(_FileLogger):
    """Write one line per epoch to a CSV file; the first row decides the columns.

    Parameters
    ----------
    path : the file, overwritten at the start of a new run
    """

    def on_begin(self, run: Run) -> None:
        self._names: list[str] = []
        super().on_begin(run)

    def write(self, row: dict[str, float]) -> None:
        writer = csv.writer(self._file, lineterminator="\n")
        if not self._names:
            self._names = list(row)
            writer.writerow(self._names)
        writer.writerow([row.get(name, "") for name in self._names])
        self._file.flush()
        self._written += 1

    def load(self, state: dict[str, Any]) -> None:
        self._written = state["rows"]
        if self._written:
            self._names = next(csv.reader(self._before.splitlines()), [])
            self._keep(self._written + 1)


class JSONLLogger(_FileLogger):
    """Write one JSON object per epoch to a file.

    Parameters
    ----------
    path : the file, overwritten at the start of a new run
    """

    def write(self, row: dict[str, float]) -> None:
        finite = {k: v if math.isfinite(v) else None for k, v in row.items()}
        self._file.write(json.dumps(finite) + "\n")
        self._file.flush()
        self._written += 1

    def load(self, state: dict[str, Any]) -> None:
        self._written = state["rows"]
        self._keep(self._written)


class TensorBoardLogger(Logger):
    """Write the rows as scalars for TensorBoard (package ``tensorboard``).

    Scalars stand at the number of steps done. A resumed run hides what the interrupted one wrote
    after its checkpoint, so that the curves have no step twice.

    Parameters
    ----------
    folder : where the event files go
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def on_begin(self, run: Run) -> None:
        _needed("tensorboard", "TensorBoardLogger")
        self._writer: Any = None
        self._last: int | None = None

    def write(self, row: dict[str, float]) -> None:
        at = _step(row)
        if self._writer is None:  # only now is it known whether the run is a resumed one
            from torch.utils.tensorboard import SummaryWriter

            purge = None if self._last is None else self._last + 1
            self._writer = SummaryWriter(str(self.folder), purge_step=purge)
        for name, value in row.items():
            if name not in ("epoch", "steps"):
                self._writer.add_scalar(name, value, at)
        self._last = at

    def on_end(self, run: Run) -> None:
        if getattr(self, "_writer", None) is not None:
            self._writer.close()

    def state(self) -> dict[str, Any]:
        return {"last": self._last}

    def load(self, state: dict[str, Any]) -> None:
        self._last = state["last"]


class MLflowLogger(Logger):
    """Send the rows as metrics to MLflow (package ``mlflow`` or ``mlflow-skinny``).

    A run that is already active is written to and left open; otherwise one is started, and a resumed
    training goes on in the run it had.

    Parameters
    ----------
    experiment : name of the experiment; None leaves MLflow's current one
    run_name : name of the run
    tracking_uri : where to; None leaves MLflow's current one

    Attributes
    ----------
    run_id : str or None, of MLflow's run
    """

    def __init__(
        self,
        experiment: str | None = None,
        run_name: str | None = None,
        tracking_uri: str | None = None,
    ) -> None:
        self.experiment, self.run_name, self.tracking_uri = experiment, run_name, tracking_uri
        self.run_id: str | None = None

    def on_begin(self, run: Run) -> None:
        self._mlflow: Any = _needed("mlflow", "MLflowLogger")
        self.run_id, self._own = None, False
        active = self._mlflow.active_run()
        if active is not None:
            self.run_id = active.info.run_id
            return
        self._own = True
        if self.tracking_uri is not None:
            self._mlflow.set_tracking_uri(self.tracking_uri)
        if self.experiment is not None:
            self._mlflow.set_experiment(self.experiment)

    def write(self, row: dict[str, float]) -> None:
        if self._own and self._mlflow.active_run() is None:  # a resumed one knows its run by now
            begun = self._mlflow.start_run(run_id=self.run_id, run_name=self.run_name)
            self.run_id = begun.info.run_id
        numbers = {k: float(v) for k, v in row.items() if k not in ("epoch", "steps")}
        self._mlflow.log_metrics(numbers, step=_step(row))

    def on_end(self, run: Run) -> None:
        if getattr(self, "_own", False):
            self._mlflow.end_run()
            self._own = False

    def state(self) -> dict[str, Any]:
        return {"run_id": self.run_id}

    def load(self, state: dict[str, Any]) -> None:
        if self._own:
            self.run_id = state["run_id"]


def _step(row: dict[str, float]) -> int:
    """Where a row stands: the steps done, or epochs for solvers without steps."""
    return int(row["steps"] or row["epoch"])


def _needed(package: str, who: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise Unsupported(
            f"{who} needs the package {package}, which is not installed; run "
            f"pip install {package}, or use CSVLogger or JSONLLogger"
        ) from error
