"""What may watch and stop a solver while it runs.

Every iterative solver reports to its callbacks through one ``Monitor``: at the start, after each
step (only to callbacks that ask for steps), after each epoch or iteration, and at the end. A hook
that returns True stops the run. A run without callbacks pays nothing.
"""

from groundstate.learn.callbacks.base import Callback, Monitor, Run
from groundstate.learn.callbacks.early_stop import BestCheckpoint, EarlyStopping
from groundstate.learn.callbacks.ema import EMA
from groundstate.learn.callbacks.loggers import (
    CSVLogger,
    HistoryTable,
    JSONLLogger,
    Logger,
    MLflowLogger,
    TensorBoardLogger,
)
from groundstate.learn.callbacks.metrics import Metrics
from groundstate.learn.callbacks.path import PathRecorder
from groundstate.learn.callbacks.plateau import Plateau
from groundstate.learn.callbacks.progress import Progress
from groundstate.learn.callbacks.regret import Regret

__all__ = [
    "BestCheckpoint",
    "CSVLogger",
    "Callback",
    "EMA",
    "EarlyStopping",
    "HistoryTable",
    "JSONLLogger",
    "Logger",
    "MLflowLogger",
    "Metrics",
    "Monitor",
    "PathRecorder",
    "Plateau",
    "Progress",
    "Regret",
    "Run",
    "TensorBoardLogger",
]
