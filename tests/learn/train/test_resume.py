"""Killed at any step and resumed is the same as never stopped, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import LinearEnergy, NetClassEnergy
from groundstate.errors import StoreError
from groundstate.learn import L2, Callback, Checkpoint, EarlyStopping, SoftMin, Stochastic, fit
from groundstate.store import Checkpoints


def rows(n: int = 120) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=g)
    return {"x": x, "y": torch.randint(3, (n,), generator=g)}


# One process imports and forks; every child trains, and all but the last kill themselves.
SCRIPT = textwrap.dedent(
    """
    import os, random, signal, sys
    import torch
    from torch import nn
    import torch._dynamo
    from groundstate.compute import Key, WeightLine
    from groundstate.energy import NetClassEnergy
    from groundstate.learn import L2, Callback, Checkpoint, EarlyStopping, SoftMin, Stochastic, fit
    from groundstate.learn.callbacks.ema import EMA

    class Kill(Callback):
        def __init__(self, after):
            self.left = after
        def on_step(self, run):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def train(folder, out, after, precision):
        g = torch.Generator().manual_seed(0)
        x, y = torch.randn(200, 4, generator=g), torch.randint(3, (200,), generator=g)
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3),
                            nn.Linear(8, 3))
        held = {"x": x[:50], "y": y[:50]}
        callbacks = [EMA(0.9), EarlyStopping(held, patience=6)]
        if folder:
            callbacks += [Checkpoint(folder, every_steps=1, keep=2), Kill(after)]
        else:
            callbacks += [Kill(0)]
        solver = Stochastic("adam", lr=0.01, batch_size=16, accumulate=2, max_epochs=9, tol=1e-5,
                            schedule="warmup+cosine", clip_norm=1.0, precision=precision)
        history = fit(NetClassEnergy(4, 3, net), {"x": x, "y": y}, SoftMin(), solver,
                      penalty=None, callbacks=callbacks, random_state=0)
        flat = torch.cat([v.double().reshape(-1) for v in net.state_dict().values()])
        text = flat.numpy().tobytes().hex() + repr(history.objective) + history.stop
        with open(out, "w") as f:
            f.write(text)

    def child(*args):
        pid = os.fork()
        if pid == 0:
            try:
                train(*args)
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
        return os.waitpid(pid, 0)[1]

    # what children would each import again; no gradient is taken before the forks
    torch.optim.Adam([torch.zeros(1, requires_grad=True)], fused=True).zero_grad()
    WeightLine.of(torch.rand(200, 4), torch.zeros(200)).batches(Key.of(0), 16)
    root = sys.argv[1]
    for precision in ("32", "fp16"):
        whole, again = f"{root}/{precision}-whole", f"{root}/{precision}-again"
        assert child("", whole, 0, precision) == 0
        kills, chance = 0, random.Random(5)
        folder = f"{root}/{precision}"
        while True:
            status = child(folder, again, chance.randint(1, 4), precision)
            if status == 0:
                break
            assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
            kills += 1
        print(precision, kills, open(whole).read() == open(again).read())
    """
)


@pytest.mark.slow  # test_stochastic.py kills one once
def test_killed_many_times_equals_uninterrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["32", "fp16"]
    assert all(line[2] == "True" for line in lines), done.stdout
    assert sum(int(line[1]) for line in lines) >= 20


class Stop(Callback):
    def __init__(self, at: int) -> None:
        self.at = at

    def on_step(self, run: object) -> bool:
        return run.total_steps == self.at  # type: ignore[attr-defined]


def test_plateau_and_stop_survive_a_checkpoint_at_an_epochs_end(tmp_path: Path) -> None:
    def run(*callbacks: Callback) -> tuple[Tensor, int, str]:
        e = LinearEnergy(4, 3)
        solver = Stochastic(lr=0.1, batch_size=30, max_epochs=60, tol=5e-2, patience=3)
        history = fit(e, rows(), SoftMin(), solver, callbacks=callbacks, random_state=0)
        return e.W.detach(), history.n_iter, history.stop

    whole = run()
    assert whole[2].startswith("objective changed")
    run(Stop(10), Checkpoint(tmp_path))  # the newest file is that of the second epoch
    resumed = run(Checkpoint(tmp_path))
    assert torch.equal(whole[0], resumed[0]) and whole[1:] == resumed[1:]
    finished = run(Checkpoint(tmp_path))  # a finished run stays finished
    assert torch.equal(whole[0], finished[0]) and whole[1:] == finished[1:]


def test_early_stopping_goes_on_where_it_stood(tmp_path: Path) -> None:
    held = rows(40)

    def run(*callbacks: Callback) -> tuple[Tensor, list[float], int]:
        e = LinearEnergy(4, 3)
        stopper = EarlyStopping(held, patience=2)
        solver = Stochastic(lr=0.5, batch_size=30, max_epochs=40, tol=None)
        history = fit(e, rows(), SoftMin(), solver, callbacks=[*callbacks, stopper], random_state=0)
        return e.W.detach(), history.extra["validation"], stopper.best_epoch

    whole = run()
    run(Stop(9), Checkpoint(tmp_path))  # listed before the stopper, told after it
    resumed = run(Checkpoint(tmp_path))
    finished = run(Checkpoint(tmp_path))
    for other in (resumed, finished):
        assert torch.equal(whole[0], other[0]) and whole[1:] == other[1:]


def test_mismatches_list_the_keys(tmp_path: Path) -> None:
    solver = Stochastic(batch_size=30, max_epochs=1, tol=None)
    fit(NetClassEnergy(4, 3, (8,)), rows(), SoftMin(), solver, callbacks=[Checkpoint(tmp_path)])
    with pytest.raises(StoreError, match=r"does not fit the energy; missing: W, b; unknown: net"):
        fit(LinearEnergy(4, 3), rows(), SoftMin(), solver, callbacks=[Checkpoint(tmp_path)])
    with pytest.raises(StoreError, match=r"other shapes: net.layers.0.weight \(8, 4\) instead of"):
        fit(NetClassEnergy(4, 3, (9,)), rows(), SoftMin(), solver,
            callbacks=[Checkpoint(tmp_path)])  # fmt: skip
    files = Checkpoints(tmp_path)
    found = files.latest()
    assert found is not None and found.state["version"] == 1
    state = {k: v for k, v in found.state.items() if k != "plateau"} | {"version": 0, "old": 1}
    files.write(found.step, state)
    with pytest.raises(StoreError, match=r"layout 0, expected 1; missing keys: plateau; unknown"):
        fit(NetClassEnergy(4, 3, (8,)), rows(), SoftMin(), solver,
            callbacks=[Checkpoint(tmp_path)])  # fmt: skip


def test_other_penalty_or_optimiser_is_named(tmp_path: Path) -> None:
    net = nn.Linear(4, 3)
    solver = Stochastic(batch_size=30, max_epochs=1, tol=None)
    fit(NetClassEnergy(4, 3, net), rows(), SoftMin(), solver, penalty=L2(1.0),
        callbacks=[Checkpoint(tmp_path)])  # fmt: skip
    with pytest.raises(StoreError, match="has 2 parameter groups, this one 1; resume with"):
        fit(NetClassEnergy(4, 3, net), rows(), SoftMin(), solver, callbacks=[Checkpoint(tmp_path)])


def test_global_generators_are_part_of_the_state(tmp_path: Path) -> None:
    import random

    import numpy as np

    class Draws(Callback):
        def on_begin(self, run: object) -> None:
            self.seen: list[float] = []

        def on_epoch(self, run: object) -> None:
            self.seen.append(random.random() + float(np.random.rand()))

        def state(self) -> dict[str, object]:
            return {"seen": self.seen}

        def load(self, state: dict[str, object]) -> None:
            self.seen = list(state["seen"])  # type: ignore[call-overload]

    def run(*more: Callback) -> list[float]:
        random.seed(1)
        np.random.seed(1)
        draws = Draws()
        solver = Stochastic(batch_size=30, max_epochs=5, tol=None)
        fit(LinearEnergy(4, 3), rows(), SoftMin(), solver, callbacks=[draws, *more], random_state=0)
        return draws.seen

    whole = run()
    run(Stop(10), Checkpoint(tmp_path))
    assert run(Stop(99), Checkpoint(tmp_path)) == whole
