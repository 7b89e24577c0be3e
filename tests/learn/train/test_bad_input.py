"""Bad training and bad input end in one sentence that names the cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import LinearEnergy, NetClassEnergy, SquaredEnergy
from groundstate.errors import DataError, ShapeError
from groundstate.learn import Callback, Checkpoint, Naive, SoftMin, Stochastic, fit, sgd
from groundstate.learn.train.population.learn import fit_population


def rows(n: int = 100) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    return {"x": torch.randn(n, 4, generator=g), "y": torch.arange(n) % 3}


class Poison(Callback):
    """Makes θ infinite in one step, so that the next loss is NaN; remembers the batches."""

    def __init__(self, at: int) -> None:
        self.at, self.batches = at, []

    def on_step(self, run: object) -> None:
        self.batches.append(run.batch["x"])  # type: ignore[attr-defined]
        if run.total_steps == self.at:  # type: ignore[attr-defined]
            next(iter(run.energy.parameters())).data.fill_(float("inf"))  # type: ignore[attr-defined]


@pytest.mark.parametrize("log_every", [1, 3, 100])
def test_nan_names_step_rows_and_last_checkpoint(tmp_path: Path, log_every: int) -> None:
    data, poison = rows(), Poison(14)
    checkpoint = Checkpoint(tmp_path, every_steps=4, keep=1)
    solver = Stochastic(batch_size=10, max_epochs=3, tol=None, log_every=log_every)
    with pytest.raises(FloatingPointError) as caught:
        fit(LinearEnergy(4, 3), data, SoftMin(), solver, callbacks=[poison, checkpoint],
            random_state=0)  # fmt: skip
    message = str(caught.value)
    assert "the loss became nan in step 4 of epoch 1 (rows " in message
    assert message.endswith("checkpoint-000000000012.gs")
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-000000000012.gs"]
    named = message.split("(rows ")[1].split(", ...")[0]
    first = data["x"][[int(i) for i in named.split(", ")]]
    if log_every == 1:  # the batch of that very step
        assert torch.equal(first, poison.batches[-1][: len(first)]) or len(poison.batches) == 14


def test_checkpoints_refuse_theta_that_is_not_finite(tmp_path: Path) -> None:
    solver = Stochastic(batch_size=10, max_epochs=3, tol=None)
    with pytest.raises(FloatingPointError, match="W became NaN or infinite by step 3 of epoch 0"):
        fit(LinearEnergy(4, 3), rows(), SoftMin(), solver,
            callbacks=[Poison(3), Checkpoint(tmp_path, every_steps=1)])  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir())[-1] == "checkpoint-000000000002.gs"


def test_divergence_is_told_before_it_overflows() -> None:
    data = {"x": torch.randn(64, 4), "y": torch.randn(64, 1)}
    solver = Stochastic(sgd, lr=2.0, batch_size=None, max_epochs=60, tol=None)
    with pytest.raises(FloatingPointError, match="training diverges: the objective rose from"):
        fit(SquaredEnergy(4, 1), data, Naive(), solver)


def test_wrong_output_size_of_a_module() -> None:
    for net, message in (
        (
            nn.Linear(4, 5),
            r"scores of shape \(2, 5\) .* for 3 classes; change the size of its last layer",
        ),
        (nn.Linear(6, 3), r"cannot take x \(2, 4\): mat1 and mat2.*check its input size"),
    ):
        with pytest.raises(ShapeError, match=message):
            fit(NetClassEnergy(4, 3, net), rows(), SoftMin(), Stochastic(max_epochs=1))


def test_labels_out_of_range() -> None:
    data = {**rows(), "y": torch.arange(100) % 5}
    with pytest.raises(DataError, match="'y' is 4 in row 4, .* the 3 values 0 to 2; encode the"):
        fit(LinearEnergy(4, 3), data, SoftMin(), Stochastic(max_epochs=1))


def test_batch_larger_than_the_data_is_the_full_batch() -> None:
    solver = Stochastic(batch_size=10_000, max_epochs=2, tol=None)
    assert len(fit(LinearEnergy(4, 3), rows(), SoftMin(), solver).objective) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"accumulate": 0}, "accumulate must be at least 1"),
        ({"log_every": 0}, "log_every must be at least 1"),
        ({"clip_norm": 0.0}, "clip_norm must be positive"),
        ({"clip_value": -1.0}, "clip_value must be positive"),
        ({"precision": "8"}, "precision must be one of auto, 32, tf32, bf16, fp16"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stochastic(**settings)  # type: ignore[arg-type]


def normed() -> NetClassEnergy:
    return NetClassEnergy(4, 3, nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)))


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_a_batch_norm_over_one_row(precision: str) -> None:
    words = (
        "a batch of 1 row gives a batch norm one value per channel, which has no variance; "
        "pass drop_last=True"
    )
    settings: dict[str, Any] = {"batch_size": 33, "max_epochs": 2, "tol": None}
    solver = Stochastic(**settings, precision=precision)
    with pytest.raises(ValueError, match=f"{words} .* or another batch_size than 33"):
        fit(normed(), rows(), SoftMin(), solver, random_state=0)
    solver = Stochastic(**settings, precision=precision, drop_last=True)
    assert fit(normed(), rows(), SoftMin(), solver, random_state=0).n_iter == 2
    with pytest.raises(ValueError, match="no variance; pass another batch_size than 33"):
        fit_population([normed(), normed()], rows(), SoftMin(), Stochastic(**settings))
