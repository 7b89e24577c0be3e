"""What may watch and stop a solver while it runs.

Every iterative solver reports to its callbacks through one ``Monitor``: at the start, after each
step (only to callbacks that ask for steps), after each epoch or iteration, and at the end. A hook
that returns True stops the run. A run without callbacks pays nothing.
"""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.callbacks.base import Callback as Callback
    from groundstate.learn.callbacks.base import Monitor as Monitor
    from groundstate.learn.callbacks.base import Run as Run
    from groundstate.learn.callbacks.early_stop import BestCheckpoint as BestCheckpoint
    from groundstate.learn.callbacks.early_stop import EarlyStopping as EarlyStopping
    from groundstate.learn.callbacks.ema import EMA as EMA
    from groundstate.learn.callbacks.loggers import CSVLogger as CSVLogger
    from groundstate.learn.callbacks.loggers import HistoryTable as HistoryTable
    from groundstate.learn.callbacks.loggers import JSONLLogger as JSONLLogger
    from groundstate.learn.callbacks.loggers import Logger as Logger
    from groundstate.learn.callbacks.loggers import MLflowLogger as MLflowLogger
    from groundstate.learn.callbacks.loggers import TensorBoardLogger as TensorBoardLogger
    from groundstate.learn.callbacks.metrics import Metrics as Metrics
    from groundstate.learn.callbacks.path import PathRecorder as PathRecorder
    from groundstate.learn.callbacks.plateau import Plateau as Plateau
    from groundstate.learn.callbacks.progress import Progress as Progress
    from groundstate.learn.callbacks.regret import Regret as Regret

lazy(__name__)
