"""What is recorded, with running instead of replaying: the machine here has no GPU."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from groundstate.compute.recorded import Recorder, Recording, no_collection
from groundstate.errors import NotApplicable


class Rerun(Recording):
    def warm_up(self) -> None:
        for _ in range(3):
            self.work(*self.inputs)

    def record(self) -> None:
        self.outputs = self.work(*self.inputs)

    def replay(self) -> None:
        self.outputs = self.work(*self.inputs)


@pytest.fixture
def rerun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recorder, "kind", Rerun)


def test_recording_leaves_the_state_as_it_was(rerun: None) -> None:
    total = torch.zeros(2)

    def work(rows: dict[str, Tensor], weight: Tensor | None) -> Tensor:
        total.add_(rows["x"].sum(0) if weight is None else weight @ rows["x"])
        return total.clone()

    recorder = Recorder(work, lambda: [total])
    x = torch.arange(6.0).view(3, 2)
    assert recorder({"x": x}, None).tolist() == [6.0, 9.0]  # once, not as often as it was tried
    assert recorder({"x": 2 * x}, None).tolist() == [18.0, 27.0]
    assert recorder({"x": x}, torch.tensor([1.0, 0.0, 0.0])).tolist() == [18.0, 28.0]
    assert len(recorder.recordings) == 2


def test_inputs_that_did_not_change_are_not_copied_again(rerun: None) -> None:
    recorder = Recorder(lambda x, y: x + y, list, settled=True)
    x, y = torch.zeros(1000), torch.ones(1000)
    recorder(x, y)
    (recording,) = recorder.recordings.values()
    versions = [held._version for held in recording.held]

    def copied() -> list[bool]:
        nonlocal versions
        before, versions = versions, [held._version for held in recording.held]
        return [now != then for now, then in zip(versions, before, strict=True)]

    assert recorder(x, y)[0] == 1 and copied() == [False, False]
    x.add_(2)
    assert recorder(x, y)[0] == 3 and copied() == [True, False]
    assert recorder(x, 3 * y)[0] == 5 and copied() == [False, True]
    with torch.inference_mode():
        quiet = torch.full((1000,), 7.0)
    assert recorder(quiet, y)[0] == 8 and copied() == [True, True]
    assert recorder(quiet, y)[0] == 8 and copied() == [True, False]
    always = Recorder(lambda x: x + 1, list)
    always(x)
    (recording,) = always.recordings.values()
    versions = [held._version for held in recording.held]
    assert always(x)[0] == 3 and copied() == [True]


def test_one_recording_per_shape_and_key_and_no_more_than_allowed(rerun: None) -> None:
    recorder = Recorder(lambda x: x + 1, list, most=2)
    for n in (1, 2, 1):
        assert recorder(torch.zeros(n)).tolist() == [1.0] * n
    with pytest.raises(NotApplicable, match="more than 2 shapes"):
        recorder(torch.zeros(3))
    with pytest.raises(NotApplicable, match="more than 2 shapes"):
        recorder(torch.zeros(1), key="other")
    recorder.forget()
    assert recorder(torch.zeros(3), key="other").tolist() == [1.0] * 3


@pytest.mark.parametrize(
    "draw", [lambda: torch.rand(1), lambda: np.random.rand(), lambda: __import__("random").random()]
)
def test_work_that_draws_is_refused(rerun: None, draw: Any) -> None:
    def work(x: Tensor) -> Tensor:
        draw()
        return x

    with pytest.raises(NotApplicable, match="draws random numbers"):
        Recorder(work, list)(torch.zeros(1))


def test_only_what_cuda_refuses_is_not_applicable(rerun: None) -> None:
    def fails(error: Exception) -> Any:
        def work(x: Tensor) -> Tensor:
            raise error

        return Recorder(work, list)

    with pytest.raises(NotApplicable, match=r"CUDA cannot record it \(not permitted\)"):
        fails(RuntimeError("not permitted\nmore"))(torch.zeros(1))
    with pytest.raises(KeyError):
        fails(KeyError("a defect"))(torch.zeros(1))


def test_the_collector_rests_and_wakes() -> None:
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
