"""The recorded step of a run, with recording replaced by running: the machine here has no GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import NetClassEnergy
from groundstate.learn import Problem, SoftMin, Stochastic, fit
from groundstate.learn.train import capture as trainer_capture
from groundstate.learn.train import run as trainer_run


class Rerun(trainer_capture._Graph):
    """What replaying does: the recorded pass, on the memory it was recorded with."""

    made = 0

    def __init__(self, step: Any, batch: Any, weight: Tensor | None, total: float) -> None:
        self.batch = {name: value.clone() for name, value in batch.items()}
        self.weight = None if weight is None else weight.clone()
        self.step, self.total, self.graph = step, total, self
        self.replay()
        for p in step.theta:
            p.grad = torch.full_like(p, torch.nan)  # a gradient that is not replayed is noticed
        Rerun.made += 1

    def replay(self) -> None:
        self.loss = self._pass()
        self.grads = [p.grad for p in self.step.theta]


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def trained(weights: Tensor | None = None, **settings: Any) -> tuple[Tensor, list[float]]:
    g = torch.Generator().manual_seed(1)
    data = {"x": torch.randn(70, 4, generator=g), "y": torch.randint(3, (70,), generator=g)}
    model = net()
    solver = Stochastic(batch_size=32, max_epochs=3, tol=None, **settings)
    history = fit(NetClassEnergy(4, 3, model), data, SoftMin(), solver, sample_weight=weights,
                  random_state=0)  # fmt: skip
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]), history.objective


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_capture, "_Graph", Rerun)
    monkeypatch.setattr(trainer_run, "written_step", lambda training: None)
    monkeypatch.setattr(trainer_run, "captured_step", trainer_capture.CapturedStep)
    Rerun.made = 0


@pytest.mark.parametrize("weighted", [False, True])
def test_replayed_steps_are_the_steps(recorded: None, weighted: bool,
                                      monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    weights = torch.arange(1, 71) % 3 + 0.5 if weighted else None
    theta, losses = trained(weights)
    assert Rerun.made >= 2  # whole batches, and the last of an epoch
    monkeypatch.undo()
    monkeypatch.setattr(trainer_run, "written_step", lambda training: None)
    plain, kept = trained(weights)
    # a slice and a copy lie differently in memory, and sums of floats depend on it
    torch.testing.assert_close(theta, plain, rtol=1e-6, atol=1e-7)
    assert losses == pytest.approx(kept, rel=1e-6)


def test_a_recording_that_fails_is_told_and_training_goes_on(
    recorded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(trainer_capture, "_Graph", fail)
    with pytest.warns(RuntimeWarning, match="not permitted when stream is capturing\\); training"):
        theta, _ = trained()
    monkeypatch.undo()
    monkeypatch.setattr(trainer_run, "written_step", lambda training: None)
    assert torch.equal(theta, trained()[0])


def test_recording_is_for_plain_networks_on_a_gpu_that_ask_for_it() -> None:
    energy = NetClassEnergy(4, 3, net())
    data = {"x": torch.zeros(4, 4), "y": torch.tensor([0, 1, 2, 0])}
    for mode in (False, True, "reduce-overhead"):
        problem = Problem(energy, SoftMin(), data)
        training = trainer_run.Training(Stochastic(), problem)
        training.settings = Stochastic(compile=mode)
        assert trainer_capture.captured_step(training) is None  # on a CPU
        training.device = torch.device("cuda")
        assert (trainer_capture.captured_step(training) is None) == (mode != "reduce-overhead")
