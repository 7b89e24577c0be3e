"""Numbers of epochs that nobody watches: read late, and the same."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from groundstate.energy import LinearEnergy
from groundstate.learn import Callback, SoftMin, Stochastic, fit
from groundstate.learn.base import History
from groundstate.learn.solvers.networks.stopping import EstimatorStopping
from groundstate.learn.train import readings
from groundstate.learn.train.readings import Readings


def rows(n: int = 60) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=g, dtype=torch.float64)
    return {"x": x, "y": (x @ torch.randn(4, 3, generator=g, dtype=torch.float64)).argmax(1)}


def run(callbacks: list[Callback], **settings: Any) -> History:
    solver = Stochastic(**{"lr": 0.05, "max_epochs": 30, "tol": None, **settings})
    return fit(
        LinearEnergy(4, 3).double(), rows(), SoftMin(), solver, callbacks=callbacks, random_state=0
    )


@pytest.mark.parametrize("wait", [0.0, math.inf])
@pytest.mark.parametrize("size", [None, 16])
def test_late_numbers_are_the_same(
    size: int | None, wait: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "WAIT", wait)
    settings: dict[str, Any] = {"batch_size": size, "log_every": 7}
    alone, watched = run([], **settings), run([Callback()], **settings)
    for name in ("objective", "positive", "contrast", "n_iter", "stop"):
        assert getattr(alone, name) == getattr(watched, name), name
    assert len(alone.objective) == 30 * (1 if size is None else 4)
    assert len(alone.seconds) == len(alone.positive) == 30


def test_nobody_waits_for_epochs_that_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "WAIT", math.inf)
    reads, read = [], Readings.read

    def counted(self: Readings) -> float:
        reads.append(self.training.progress.epoch)
        return read(self)

    monkeypatch.setattr(Readings, "read", counted)
    run([], batch_size=None)
    assert reads == [30]
    reads.clear()
    run([], batch_size=None, log_every=10)
    assert reads == [9, 19, 29, 30]


@pytest.mark.parametrize("wait", [0.0, math.inf])
def test_a_late_look_names_the_epoch(wait: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "WAIT", wait)

    class Breaks(SoftMin):
        taken = 0

        def mean(self, *args: Any, **settings: Any) -> Any:
            loss, terms = super().mean(*args, **settings)
            type(self).taken += 1
            return loss * (math.nan if self.taken == 6 else 1.0), terms

    solver = Stochastic(lr=0.05, batch_size=None, max_epochs=20, tol=None)
    with pytest.raises(FloatingPointError, match="nan in step 0 of epoch 5"):
        fit(LinearEnergy(4, 3).double(), rows(), Breaks(), solver, random_state=0)


@pytest.mark.parametrize("wait", [0.0, math.inf])
@pytest.mark.parametrize("patience", [3.0, math.inf])
def test_losses_of_all_epochs_are_kept(
    patience: float, wait: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "WAIT", wait)
    alone, watched = (
        run([EstimatorStopping(0.0, patience)]),
        run([EstimatorStopping(0.0, patience), Callback()]),
    )
    assert alone.extra["loss"] == watched.extra["loss"]
    assert alone.objective == watched.objective and len(alone.extra["loss"]) == alone.n_iter
    assert all(math.isfinite(v) for v in alone.extra["loss"])
    assert EstimatorStopping(0.0, patience).watches == (patience < math.inf)
