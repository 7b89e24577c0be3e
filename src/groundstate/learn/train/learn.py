r"""The learning operator: data, settings and a seed in; parameters and their history out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, History, Penalty, Rule
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.fit import fit
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.train.checkpoint import Checkpoint
from groundstate.learn.train.optimizers import Optimizer
from groundstate.learn.train.sources import as_source
from groundstate.learn.train.stochastic import Stochastic


@dataclass
class LearnResult:
    """What ``learn`` found.

    Attributes
    ----------
    energy : the learned energy, the one that was passed
    params : its parameters by name
    history : objective per step, terms and seconds per epoch, why it stopped; ``history.about``
        lists seed, device, threads and versions
    reason : why the run stopped
    """

    energy: Energy
    params: dict[str, Tensor]
    history: History
    _state: Callable[[], dict[str, Any]] = field(repr=False)

    @property
    def reason(self) -> str:
        return self.history.stop

    @property
    def state(self) -> dict[str, Any]:
        """Everything a checkpoint of the finished run would hold."""
        return self._state()


class _Keep(Callback):
    def on_begin(self, run: Run) -> None:
        self.run = run


def learn(
    energy: Energy,
    data: Mapping[str, Any] | Iterable[Batch] | Any,
    loss: Rule | None = None,
    optimizer: str | Optimizer = "adam",
    *,
    lr: float = 1e-3,
    epochs: int = 100,
    batch_size: int | None = 256,
    schedule: Any = None,
    penalty: Penalty | None = None,
    callbacks: Sequence[Callback] = (),
    seed: Any = 0,
    sample_weight: Tensor | None = None,
    resume: str | Path | None = None,
    device: str | torch.device | None = None,
    **settings: Any,
) -> LearnResult:
    r"""Learn(D; λ, ε): :math:`\hat\theta` by stochastic steps on
    :math:`J(\theta) = (\sum_i w_i L_i(\theta) + \Omega(\theta))/\sum_i w_i`, a function of the data,
    the settings λ and the seed ε.

    Parameters
    ----------
    energy : whose parameters are learned, in place
    data : arrays or tensors by variable name, a tuple ``(x, y)``, a torch ``Dataset``, a source of
        rows (``Arrays``, ``Parquet``, ``Items``) or an iterable of batches
    loss : the learning rule; None is maximum likelihood
    optimizer : name or ``(parameters, lr) -> torch.optim.Optimizer``
    lr : learning rate
    epochs : passes over the data
    batch_size : rows of a step; None takes all
    schedule : factor on ``lr``, by name or as a function of the step
    penalty : prior on θ
    callbacks : see ``groundstate.learn.callbacks``
    seed : int, key or None
    sample_weight : ``(N,)``; a weight of 2 is the row twice
    resume : folder of checkpoints; the run goes on from the newest one and writes new ones there
    device : where to train
    settings : further settings of ``Stochastic``; ``tol`` is None, so that all epochs are run

    Returns
    -------
    LearnResult

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> x = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
    >>> result = learn(LinearEnergy(1, 2), (x, torch.tensor([0, 0, 1, 1])), lr=0.1, epochs=50)
    >>> result.history.objective[-1] < 0.3, result.reason
    (True, 'max_epochs')
    """
    solver = Stochastic(
        **{"tol": None, **settings},
        optimizer=optimizer,
        lr=lr,
        max_epochs=epochs,
        batch_size=batch_size,
        schedule=schedule,
    )
    keep = _Keep()
    watching = [keep, *callbacks]
    if resume is not None:
        watching.append(Checkpoint(resume))
    history = fit(
        energy,
        as_source(data),
        NLL() if loss is None else loss,
        solver,
        sample_weight=sample_weight,
        penalty=penalty,
        callbacks=watching,
        random_state=seed,
        device=device,
    )
    params = {name: p.detach() for name, p in energy.named_parameters()}
    assert keep.run.state is not None
    return LearnResult(energy, params, history, keep.run.state)
