"""scikit-learn's callbacks on our solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.callback import FitCallback

from groundstate.energy.base import Energy
from groundstate.learn.callbacks import Callback, Progress, Run


class SklearnBridge(Callback):
    """Forwards epochs of a solver to the task tree of scikit-learn's callback protocol.

    Parameters
    ----------
    estimator : the estimator being fitted
    context : its root ``CallbackContext``
    metadata : keyword arguments of the hooks: ``X``, ``y``, ``metadata``
    attributes : gives the learned attributes of the estimator as if the fit ended now
    """

    def __init__(
        self,
        estimator: Any,
        context: Any,
        metadata: dict[str, Any],
        attributes: Callable[[], dict[str, Any]],
    ) -> None:
        self.estimator = estimator
        self.context = context
        self.metadata = metadata
        self.attributes = attributes

    def on_begin(self, run: Run) -> None:
        self.context.max_subtasks = run.max_epochs
        self.context.call_on_fit_task_begin(estimator=self.estimator, **self.metadata)
        self._open(run)

    def _open(self, run: Run) -> None:
        self.task = None
        if run.epoch < run.max_epochs:
            self.task = self.context.subcontext(task_name=f"{run.history.solver}-iter")
            self.task.call_on_fit_task_begin(estimator=self.estimator, **self.metadata)

    def on_epoch(self, run: Run) -> bool:
        if self.task is None:
            return False
        stop = self.task.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=self.attributes,
            **self.metadata,
        )
        if not stop:
            self._open(run)
        else:
            self.task = None
        return bool(stop)

    def on_end(self, run: Run) -> None:
        """The estimator closes the root task once its attributes are set."""


def callbacks_of(
    estimator: Any, energy: Energy, X: Any, y: Any, weight: Any
) -> tuple[list[Any], SklearnBridge | None]:
    """What watches a fit: a bar, callbacks of ours, and a bridge to scikit-learn's, also alone."""
    given = list(getattr(estimator, "callbacks", None) or ())
    foreign = [c for c in given if isinstance(c, FitCallback)]
    bar = [Progress(type(estimator).__name__)] if getattr(estimator, "verbose", 0) else []
    mine = [*bar, *(c for c in given if not isinstance(c, FitCallback))]
    if foreign:
        estimator.set_callbacks(*foreign)
    watched = getattr(estimator, "_skl_callbacks", ()) or hasattr(estimator, "_parent_callback_ctx")
    if not watched:
        return mine, None
    bridge = SklearnBridge(
        estimator,
        estimator._init_callback_context(max_subtasks=None),
        {"X": X, "y": y, "metadata": None if weight is None else {"sample_weight": weight}},
        lambda: {"energy_": energy, "n_iter_": 1, **estimator._learned(energy)},
    )
    return [*mine, bridge], bridge
