"""The learning operator is a function of data, settings and seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from groundstate.energy import LinearEnergy, NetClassEnergy
from groundstate.learn import L2, Callback, Perceptron, Progress
from groundstate.learn.train.learn import LearnResult, learn


def rows(n: int = 90) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(0))
    return x, torch.arange(n) % 3


def net(seed: int = 0) -> NetClassEnergy:
    return NetClassEnergy(4, 3, (8,), generator=torch.Generator().manual_seed(seed))


def flat(result: LearnResult) -> Tensor:
    return torch.cat([p.reshape(-1) for p in result.params.values()])


def test_same_seed_same_result_whoever_watches() -> None:
    class Draws(Callback):
        def on_step(self, run: object) -> None:
            torch.rand(1)

    settings = {"epochs": 3, "batch_size": 16, "schedule": "cosine", "penalty": L2(0.1)}
    first = learn(net(), rows(), seed=4, **settings)
    assert torch.equal(flat(first), flat(learn(net(), rows(), seed=4, **settings)))
    watched = learn(net(), rows(), seed=4, callbacks=[Draws(), Progress()], **settings)
    assert torch.equal(flat(first), flat(watched))
    assert not torch.equal(flat(first), flat(learn(net(), rows(), seed=5, **settings)))
    assert first.reason == "max_epochs" and len(first.history.objective) == 18
    assert set(first.params) == {name for name, _ in first.energy.named_parameters()}


def test_order_seed_leaves_the_start_alone() -> None:
    assert all(
        torch.equal(a, b) for a, b in zip(net().parameters(), net().parameters(), strict=True)
    )
    a = learn(net(), rows(), seed=1, epochs=1, batch_size=16).history.objective
    b = learn(net(), rows(), seed=2, epochs=1, batch_size=16).history.objective
    full = [
        learn(net(), rows(), seed=s, epochs=1, batch_size=None).history.objective for s in (1, 2)
    ]
    assert a != b and full[0] == full[1]  # the order is all that the seed decides here


@pytest.mark.parametrize("kind", ["arrays", "mapping", "dataset", "memmap"])
def test_any_data(kind: str, tmp_path: Path) -> None:
    x, y = rows()
    data: object = (x.numpy(), y.numpy())
    if kind == "mapping":
        data = {"x": x, "y": y}
    elif kind == "dataset":
        data = torch.utils.data.TensorDataset(x, y)
    elif kind == "memmap":
        kept = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=(90, 4))
        kept[:] = x.numpy()
        data = {"x": kept, "y": y.numpy()}
    result = learn(net(), data, optimizer="momentum", lr=0.1, epochs=5, batch_size=30)
    assert len(result.history.objective) == 15
    assert result.history.objective[-1] < result.history.objective[0]


def test_resume_and_state(tmp_path: Path) -> None:
    whole = learn(net(), rows(), epochs=4, batch_size=16)
    learn(net(), rows(), epochs=2, batch_size=16, resume=tmp_path)
    resumed = learn(net(), rows(), epochs=4, batch_size=16, resume=tmp_path)
    assert torch.equal(flat(whole), flat(resumed))
    assert whole.state["place"] == resumed.state["place"] == [4, 0, 24]


def test_rules_and_settings_pass_through() -> None:
    x, y = rows()
    result = learn(
        LinearEnergy(4, 3),
        (x, y),
        Perceptron(),
        "sgd",
        epochs=2,
        batch_size=None,
        clip_norm=1.0,
        lr=0.1,
    )
    assert len(result.history.objective) == 2
    with pytest.raises(TypeError, match="unexpected keyword"):
        learn(LinearEnergy(4, 3), (x, y), momentumm=0.9)


def test_equal_in_a_second_process() -> None:
    script = (
        "import torch; from tests.learn.train.test_learn import *;"
        "print(flat(learn(net(), rows(), epochs=2, batch_size=16)).numpy().tobytes().hex())"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root)
    here = flat(learn(net(), rows(), epochs=2, batch_size=16)).numpy().tobytes().hex()
    assert done.stdout.strip() == here, done.stderr
