r"""The stochastic solver: the one training loop of the library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from groundstate.learn.base import History, Problem
from groundstate.learn.train.optimizers import Optimizer, adam, optimizer_of, sgd
from groundstate.learn.train.precision import PRECISIONS
from groundstate.learn.train.run import Training as _Training
from groundstate.registry import solvers


@solvers.register(
    formula=r"\theta \leftarrow \theta - \eta\,\mathrm{opt}(\nabla J_{\text{batch}})",
    make=lambda energy: Stochastic(),
)
@dataclass(frozen=True)
class Stochastic:
    r"""Lower :math:`J(\theta)` by steps on mini-batches, :math:`\theta \leftarrow \theta - \eta\,
    \mathrm{opt}(\nabla J_{\text{batch}})`.

    Mini-batches are cuts of the weight line, so weights are repetitions and the order of the rows
    does not matter. It runs for every energy and rule; a run can be stopped anywhere and resumed
    to the same bits (``Checkpoint``). A step is: batch, loss, backward, clip, optimiser, proximal
    map of the penalty, schedule.

    Parameters
    ----------
    optimizer : a name (``adam``, ``adamw``, ``sgd``, ``momentum``, ``nesterov``, ``rmsprop``,
        ``adagrad``, ``adadelta``) or ``(parameters, lr) -> torch.optim.Optimizer``
    lr : learning rate
    batch_size : rows (units of weight) of a step; None, or more than there are, takes all rows
    max_epochs : passes over the data at most
    tol : stop when the epoch's objective has not improved by ``tol * max(1, |best|)`` ...
    patience : ... for this many epochs; ``tol=None`` never stops early
    schedule : factor on ``lr``: a name or object of ``groundstate.learn.train.schedules``, or a function
        of the finished steps (called ``done``: of the finished fraction of the run)
    clip_norm : largest norm of a gradient
    average : replace θ at the end by its mean over the last fraction of the epochs
    clip_value : largest entry of a gradient
    accumulate : batches whose gradients are summed, by their weights, before a step
    replacement : draw the rows of a batch independently instead of visiting each once per epoch
    drop_last : leave out the last batch of an epoch when it is smaller
    precision : "32", "tf32", "bf16", "fp16", or "auto": "bf16" on a GPU and "32" elsewhere
    compile : run the networks through ``torch.compile``; a text names its mode. But for modes other
        than ``"reduce-overhead"``, a step on a GPU is recorded as a CUDA graph wherever it can be,
        compiled or not: the same numbers without the launches
    prox : L1-like penalties act by their proximal map, which makes exact zeros; else by a subgradient
    log_every : steps between readings of the loss; a run with a loss that is not finite stops there
    deterministic : only algorithms that give the same bits every time, also on a GPU
    shard : "fsdp" spreads θ and the optimiser's state over the processes, for large networks, with
        penalties that are sums over the entries of θ; None keeps a copy on each
    sync_norm : batch norms use the rows of all processes
    bucket : batches of sequences of about the same length, so that little is filled up; each row is
        still seen once an epoch
    """

    optimizer: str | Optimizer = adam
    lr: float = 1e-3
    batch_size: int | None = 256
    max_epochs: int = 100
    tol: float | None = 1e-4
    patience: int = 5
    schedule: Any = None
    clip_norm: float | None = None
    average: float | None = None
    clip_value: float | None = None
    accumulate: int = 1
    replacement: bool = False
    drop_last: bool = False
    precision: str = "32"
    compile: bool | str = False
    prox: bool = True
    log_every: int = 100
    deterministic: bool = False
    shard: str | None = None
    sync_norm: bool = False
    bucket: bool = False
    feeds: ClassVar[bool] = True  # rows may stay in main memory; batches go to the device

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimizer", optimizer_of(self.optimizer))
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1 or None, got {self.batch_size}")
        for name in ("lr", "clip_norm", "clip_value"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")
        for name in ("max_epochs", "accumulate", "log_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.average is not None and not 0 < self.average <= 1:
            raise ValueError(f"average must be in (0, 1] or None, got {self.average}")
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}"
            )

        if self.shard not in (None, "fsdp"):
            raise ValueError(f"shard must be 'fsdp' or None, got {self.shard!r}")

    def reason_against(self, problem: Problem) -> str | None:
        for part in (problem.energy, problem.rule):
            if any(p.requires_grad for p in part.parameters()):
                return None
        return f"{type(problem.energy).__name__} has no parameters to learn"

    def run(self, problem: Problem) -> History:
        return _Training(self, problem).run()


__all__ = ["Optimizer", "Stochastic", "_Training", "adam", "sgd"]
