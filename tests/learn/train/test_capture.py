"""The recorded step of a run, with recording replaced by running: the machine here has no GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.compute.recorded import Recorder, Recording
from groundstate.energy import NetClassEnergy
from groundstate.learn import Problem, SoftMin, Stochastic, fit
from groundstate.learn.train import capture as trainer_capture
from groundstate.learn.train import run as trainer_run


class Rerun(Recording):
    """What replaying does: the recorded pass, on the memory it was recorded with."""

    made = 0

    def warm_up(self) -> None:
        self.work(*self.inputs)

    def record(self) -> None:
        self.replay()
        for grad in self.outputs[1]:
            grad.fill_(torch.nan)  # a gradient that is not replayed is noticed
        Rerun.made += 1

    def replay(self) -> None:
        self.outputs = self.work(*self.inputs)


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
    monkeypatch.setattr(Recorder, "kind", Rerun)
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


def test_a_recording_that_fails_is_reported_and_training_goes_on(
    recorded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Rerun) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(Rerun, "record", fail)
    with pytest.warns(RuntimeWarning, match="not permitted when stream is capturing\\); training"):
        theta, _ = trained()
    monkeypatch.undo()
    monkeypatch.setattr(trainer_run, "written_step", lambda training: None)
    assert torch.equal(theta, trained()[0])


def test_steps_that_draw_from_a_generator_are_not_recorded(
    recorded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Noise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.randn_like(x)

    noisy = lambda: nn.Sequential(nn.Linear(4, 8), Noise(), nn.Linear(8, 3))
    monkeypatch.setitem(globals(), "net", noisy)
    with pytest.warns(RuntimeWarning, match="it draws random numbers in every step"):
        trained()
    assert Rerun.made == 0


def test_other_errors_are_seen(recorded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Rerun) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(Rerun, "record", fail)
    with pytest.raises(KeyError, match="a defect"):
        trained()


def test_recording_is_the_way_of_a_gpu() -> None:
    data = {"x": torch.zeros(4, 4), "y": torch.tensor([0, 1, 2, 0])}

    def training(**settings: Any) -> Any:
        problem = Problem(NetClassEnergy(4, 3, net()), SoftMin(), data)
        made = trainer_run.Training(Stochastic(), problem)
        made.settings = Stochastic(**settings)
        return made

    for settings, expected in (
        ({}, True), ({"compile": "reduce-overhead"}, True), ({"compile": True}, True),
        ({"compile": "max-autotune"}, False),
        ({"accumulate": 2}, False),
    ):  # fmt: skip
        made = training(**settings)
        assert trainer_capture.captured_step(made) is None  # on a CPU
        made.device = torch.device("cuda")
        assert (trainer_capture.captured_step(made) is not None) == expected
