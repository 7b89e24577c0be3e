"""Stop when the held-out loss no longer falls, and keep the best parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from groundstate.learn.callbacks.base import Callback, Run
from groundstate.learn.callbacks.best import Best
from groundstate.learn.callbacks.held_out import held_out_loss
from groundstate.learn.stops import Patience

if TYPE_CHECKING:
    from groundstate.energy.base import Energy

Criterion = str | Callable[["Energy"], float]


class Watched(Callback):
    """What early stopping and best checkpoints share: one number per epoch, low is good.

    Parameters
    ----------
    validation : mapping of tensors, optional
        Held-out rows for ``monitor="val_loss"``.
    sample_weight : (M,) tensor, optional
        Weights of the held-out rows.
    monitor : "val_loss", "objective", a name in ``run.logs`` or a function of the energy
        What is watched. "val_loss" is the rule's weighted mean loss on ``validation``, and the
        training objective without held-out rows.
    mode : "min" or "max"
        Whether low or high is good.
    """

    def __init__(
        self,
        validation: Mapping[str, Tensor] | None = None,
        *,
        sample_weight: Tensor | None = None,
        monitor: Criterion = "val_loss",
        mode: Literal["min", "max"] = "min",
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode must be 'min' or 'max', got {mode!r}")
        self.validation, self.sample_weight = validation, sample_weight
        self.monitor, self.mode = monitor, mode

    def value(self, run: Run) -> float:
        """This epoch's number, with its sign."""
        if callable(self.monitor):
            return float(self.monitor(run.energy))
        if self.monitor == "objective" or (self.monitor == "val_loss" and self.validation is None):
            return run.objective
        if self.monitor == "val_loss":
            assert self.validation is not None
            return held_out_loss(run, self.validation, self.sample_weight)
        if self.monitor not in run.logs:
            known = ", ".join(run.logs) or "none"
            raise ValueError(
                f"monitor={self.monitor!r} is not among the logs of this epoch ({known}); put a "
                "Metrics callback that makes it before this one"
            )
        return run.logs[self.monitor]

    def badness(self, value: float) -> float:
        return math.inf if math.isnan(value) else value if self.mode == "min" else -value


class EarlyStopping(Watched):
    r"""Stop when a validation objective has not improved by ``min_delta`` for ``patience`` epochs.

    .. math:: \hat t = \arg\min_t f^*(\theta_t), \qquad
        \text{stop at the first } t \ge \hat t + \text{patience}

    Parameters
    ----------
    validation, sample_weight, monitor, mode
        What is watched: by default the rule's weighted mean loss on the held-out rows
        ``validation``, any name in ``run.logs`` (see ``Metrics``) or a function of the energy.
    patience : int, default=10
        Epochs without an improvement.
    min_delta : float, default=0.0
        Smaller improvements do not count.
    restore_best : bool
        Put the best parameters back at the end, and the state that the rule had with them.

    Attributes
    ----------
    best : float
    best_epoch : int

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> x = torch.tensor([[-1.0], [1.0], [-2.0], [2.0]])
    >>> wrong = {"x": x, "y": torch.tensor([1, 0, 1, 0])}  # learning makes these worse
    >>> stopper = EarlyStopping(wrong, patience=2)
    >>> right = {"x": x, "y": torch.tensor([0, 1, 0, 1])}
    >>> solver = Stochastic(max_epochs=50, tol=None)
    >>> fit(LinearEnergy(1, 2), right, SoftMin(), solver, callbacks=[stopper]).n_iter
    3
    """

    def __init__(
        self,
        validation: Mapping[str, Tensor] | None = None,
        *,
        sample_weight: Tensor | None = None,
        monitor: Criterion = "val_loss",
        mode: Literal["min", "max"] = "min",
        patience: int = 10,
        min_delta: float = 0.0,
        restore_best: bool = True,
    ) -> None:
        super().__init__(validation, sample_weight=sample_weight, monitor=monitor, mode=mode)
        if patience < 1:
            raise ValueError(f"patience must be at least 1 epoch, got {patience}")
        self.patience, self.min_delta, self.restore_best = patience, min_delta, restore_best

    def on_begin(self, run: Run) -> None:
        self._stop = Patience(tol=self.min_delta, patience=self.patience, creeping=False)
        self.best_epoch = 0
        self._kept = Best()

    @property
    def best(self) -> float:
        """The best value seen."""
        return float(self._stop.best[0]) * (1 if self.mode == "min" else -1)

    def on_epoch(self, run: Run) -> bool:
        value = self.value(run)
        run.history.extra.setdefault("validation", []).append(value)
        if self.monitor == "val_loss":
            run.logs["val_loss"] = value
        stop = bool(self._stop(self.badness(value))[0])
        if self._stop.improved[0]:
            self.best_epoch = run.epoch
            if self.restore_best:
                self._kept.keep(run)
        if stop:
            run.history.stop = f"no improvement in {self.patience} epochs"
        return stop

    def on_end(self, run: Run) -> None:
        self._kept.put_back(run)

    def state(self) -> dict[str, Any]:
        lowest, stale = float(self._stop.best[0]), int(self._stop.stale[0])
        state = {"lowest": lowest, "best_epoch": self.best_epoch, "stale": stale}
        return {**state, **self._kept.state()}

    def load(self, state: dict[str, Any]) -> None:
        self.best_epoch = state["best_epoch"]
        self._stop.load([state["lowest"], state.get("stale", 0)])
        self._kept.load(state)


class BestCheckpoint(Watched):
    r"""Keep the parameters of the ``k`` best epochs by any criterion :math:`f^*(\theta)`.

    The criterion need not be the training loss: any function of the energy, a metric of the log or
    the held-out loss.

    Parameters
    ----------
    k : int, default=1
        How many to keep.
    validation, sample_weight, monitor, mode
        What is watched; see ``EarlyStopping``.
    folder : path, optional
        Also write every kept θ there, as ``best-<epoch>.gs``; what falls out is removed.

    Attributes
    ----------
    kept : list of (value, epoch, parameters by name), best first

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.tensor([[-1.0], [1.0]]), "y": torch.tensor([0, 1])}
    >>> best = BestCheckpoint(2, monitor="objective")
    >>> solver = Stochastic(max_epochs=5, tol=None)
    >>> _ = fit(LinearEnergy(1, 2), data, SoftMin(), solver, callbacks=[best])
    >>> [epoch for _, epoch, _ in best.kept]
    [5, 4]
    """

    def __init__(
        self,
        k: int = 1,
        validation: Mapping[str, Tensor] | None = None,
        *,
        sample_weight: Tensor | None = None,
        monitor: Criterion = "val_loss",
        mode: Literal["min", "max"] = "min",
        folder: str | Path | None = None,
    ) -> None:
        super().__init__(validation, sample_weight=sample_weight, monitor=monitor, mode=mode)
        if k < 1:
            raise ValueError(f"k is the number of parameters to keep, at least 1, got {k}")
        self.k, self.folder = k, None if folder is None else Path(folder)

    def on_begin(self, run: Run) -> None:
        self.kept: list[tuple[float, int, dict[str, Tensor]]] = []

    def on_epoch(self, run: Run) -> None:
        value = self.value(run)
        bad = self.badness(value)
        if len(self.kept) == self.k and bad >= self.badness(self.kept[-1][0]):
            return
        self.kept.append((value, run.epoch, _copied(run.energy)))
        self.kept.sort(key=lambda entry: (self.badness(entry[0]), entry[1]))
        dropped, self.kept = self.kept[self.k :], self.kept[: self.k]
        if self.folder is not None:
            self._write(self.folder, run.epoch, [epoch for _, epoch, _ in dropped])

    def _write(self, folder: Path, epoch: int, dropped: list[int]) -> None:
        from groundstate.store import save

        folder.mkdir(parents=True, exist_ok=True)
        value, _, theta = next(entry for entry in self.kept if entry[1] == epoch)
        save({"value": value, "epoch": epoch, "energy": theta}, folder / f"best-{epoch:06d}.gs")
        for old in dropped:
            (folder / f"best-{old:06d}.gs").unlink(missing_ok=True)

    def restore(self, energy: Energy, rank: int = 0) -> float:
        """Put the parameters of the rank-th best epoch into ``energy``; its value comes back."""
        if not 0 <= rank < len(self.kept):
            raise ValueError(f"{len(self.kept)} parameters are kept, there is no rank {rank}")
        value, _, theta = self.kept[rank]
        energy.load_state_dict(theta)
        return value

    def state(self) -> dict[str, Any]:
        return {"kept": [list(entry) for entry in self.kept]}

    def load(self, state: dict[str, Any]) -> None:
        self.kept = [(float(v), int(epoch), theta) for v, epoch, theta in state["kept"]]


def _copied(energy: Energy) -> dict[str, Tensor]:
    return {k: v.detach().clone() for k, v in energy.state_dict().items()}
