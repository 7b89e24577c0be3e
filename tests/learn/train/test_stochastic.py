"""The stochastic trainer: weights are repetitions, order does not matter, resume is exact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import LinearEnergy, NetClassEnergy
from groundstate.errors import NotConverged
from groundstate.learn import (
    L2,
    LBFGS,
    Callback,
    Checkpoint,
    EarlyStopping,
    Progress,
    SoftMin,
    Stochastic,
    fit,
    fit_population,
    sgd,
)


def rows(n: int = 200, d: int = 4, k: int = 3) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, d, generator=g, dtype=torch.float64)
    y = (x @ torch.randn(d, k, generator=g, dtype=torch.float64)).argmax(1)
    return {"x": x, "y": y}


def energy(d: int = 4, k: int = 3) -> LinearEnergy:
    return LinearEnergy(d, k).double()


def trained(data: dict[str, Tensor], weight: Tensor | None = None, **settings: object) -> Tensor:
    e = energy()
    solver = Stochastic(**{"lr": 0.05, "batch_size": 32, "max_epochs": 5, **settings})
    fit(e, data, SoftMin(), solver, sample_weight=weight, random_state=3)
    return e.W.detach()


def test_row_twice_is_weight_two() -> None:
    data = rows(90)
    weight = torch.ones(90, dtype=torch.float64)
    weight[::3] = 2.0
    weight[1] = 0.0
    index = torch.repeat_interleave(torch.arange(90), weight.long())
    repeated = {k: v[index] for k, v in data.items()}
    torch.testing.assert_close(trained(data, weight), trained(repeated), rtol=1e-10, atol=1e-12)


def test_order_of_rows_does_not_matter() -> None:
    data = rows()
    order = torch.randperm(200, generator=torch.Generator().manual_seed(1))
    shuffled = {k: v[order] for k, v in data.items()}
    assert torch.equal(trained(data), trained(shuffled))


def test_scaled_weights_change_nothing_but_the_batches() -> None:
    data = rows()
    w = torch.full((200,), 2.0, dtype=torch.float64)
    once, twice = trained(data, batch_size=32), trained(data, w, batch_size=64)
    torch.testing.assert_close(once, twice, rtol=1e-10, atol=1e-12)


def test_history_holds_objective_terms_and_time() -> None:
    e = energy()
    history = fit(
        e, rows(), SoftMin(), Stochastic(batch_size=50, max_epochs=3, tol=None), random_state=0
    )
    assert len(history.objective) == 12 and history.n_iter == 3
    assert len(history.positive) == len(history.contrast) == len(history.seconds) == 3
    assert history.objective[-1] < history.objective[0]


def test_stops_on_a_plateau() -> None:
    history = fit(
        energy(),
        rows(),
        SoftMin(),
        Stochastic(lr=0.05, max_epochs=1000, tol=1e-2, patience=2),
        random_state=0,
    )
    assert history.converged and history.n_iter < 1000


def test_averaged_descent_reaches_the_exact_minimum() -> None:
    data, penalty = rows(), L2(1.0)
    exact, averaged = energy(), energy()
    best = fit(exact, data, SoftMin(), LBFGS(tol=1e-9), penalty=penalty).objective[-1]
    solver = Stochastic(
        optimizer=sgd, lr=0.5, batch_size=32, max_epochs=200, tol=None, average=0.5,
        schedule=lambda done: 1 - 0.9 * done,
    )  # fmt: skip
    fit(averaged, data, SoftMin(), solver, penalty=penalty, random_state=0)
    logits = -averaged.table("y", x=data["x"])
    reached = torch.nn.functional.cross_entropy(logits, data["y"]) + penalty(averaged) / 200
    assert reached.item() <= best * (1 + 1e-3)


def test_stream_of_batches_learns() -> None:
    data = rows()
    stream = [{k: v[i : i + 50] for k, v in data.items()} for i in range(0, 200, 50)]
    e = energy()
    history = fit(e, stream, SoftMin(), Stochastic(lr=0.05, max_epochs=20, tol=None))
    assert history.objective[-1] < 0.7 * history.objective[0]
    with pytest.raises(ValueError, match="put the weights into each batch"):
        fit(energy(), stream, SoftMin(), sample_weight=torch.ones(200))


def test_diverging_loss_says_where_and_what_to_do() -> None:
    with pytest.raises(FloatingPointError, match=r"loss became (nan|inf).*lower lr"):
        fit(
            energy(),
            {"x": 1e200 * rows()["x"], "y": rows()["y"]},
            SoftMin(),
            Stochastic(optimizer=sgd, lr=1e150, max_epochs=50, tol=None),
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"max_epochs": 0}, "max_epochs must be at least 1"),
        ({"average": 2.0}, "average must be in"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stochastic(**settings)  # type: ignore[arg-type]


def test_early_stopping_restores_the_best() -> None:
    data, held = rows(60), rows(61)
    stopper = EarlyStopping(held, patience=3)
    e = energy()
    history = fit(
        e, data, SoftMin(), Stochastic(lr=1.0, max_epochs=200, tol=None), callbacks=[stopper]
    )
    validation = history.extra["validation"]
    assert history.n_iter == stopper.best_epoch + 3 and "no improvement" in history.stop
    loss = SoftMin()(e, held).loss.mean()
    assert loss.item() == pytest.approx(min(validation), rel=1e-12)


def test_callback_can_stop_in_the_middle_of_an_epoch() -> None:
    class After(Callback):
        def on_step(self, run: object) -> bool:
            return run.total_steps == 5  # type: ignore[attr-defined]

    history = fit(
        energy(), rows(), SoftMin(), Stochastic(batch_size=10, max_epochs=9), callbacks=[After()]
    )
    assert len(history.objective) == 5 and history.stop == "callback"


def test_progress_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    fit(energy(), rows(), SoftMin(), Stochastic(max_epochs=2), callbacks=[Progress()])
    assert capsys.readouterr().out.strip() == ""


def test_resume_gives_the_same_bits(tmp_path: Path) -> None:
    class Stop(Callback):
        def on_step(self, run: object) -> bool:
            return run.total_steps == 17  # type: ignore[attr-defined]

    def net() -> NetClassEnergy:
        return NetClassEnergy(4, 3, (8,), generator=torch.Generator().manual_seed(0)).double()

    solver = Stochastic(lr=0.01, batch_size=16, max_epochs=4, average=0.5)
    whole, broken, resumed = net(), net(), net()
    fit(whole, rows(), SoftMin(), solver, penalty=L2(0.1), random_state=1)
    checkpoint = Checkpoint(tmp_path, every_steps=5)
    fit(broken, rows(), SoftMin(), solver, penalty=L2(0.1), random_state=1,
        callbacks=[checkpoint, Stop()])  # fmt: skip
    history = fit(resumed, rows(), SoftMin(), solver, penalty=L2(0.1), random_state=1,
                  callbacks=[Checkpoint(tmp_path, every_steps=5)])  # fmt: skip
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)
    assert history.n_iter == 4


SCRIPT = textwrap.dedent(
    """
    import sys, time, torch
    from groundstate.energy import NetClassEnergy
    from groundstate.learn import Callback, Checkpoint, SoftMin, Stochastic, fit
    class Slow(Callback):
        def on_step(self, run):
            time.sleep(float(sys.argv[2]))
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(300, 4, generator=g), torch.randint(3, (300,), generator=g)
    e = NetClassEnergy(4, 3, (8,), generator=torch.Generator().manual_seed(0))
    callbacks = [Slow(), Checkpoint(sys.argv[1], every_steps=3)] if sys.argv[1] else []
    fit(e, {"x": x, "y": y}, SoftMin(), Stochastic(batch_size=16, max_epochs=3, tol=None),
        callbacks=callbacks, random_state=0)
    print(torch.cat([p.detach().reshape(-1) for p in e.parameters()]).numpy().tobytes().hex())
    """
)


def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    def run(folder: str, pause: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SCRIPT, folder, pause]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)

    whole = run("", "0")
    killed = run(str(tmp_path), "0.02")
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("*.gs"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.11)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    resumed = run(str(tmp_path), "0")
    assert resumed.communicate()[0] == whole.communicate()[0] != ""


def test_checkpoints_need_a_solver_that_can_resume(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="use checkpoints with Stochastic"):
        fit(energy(), rows(), SoftMin(), LBFGS(), callbacks=[Checkpoint(tmp_path)])


@pytest.mark.parametrize("how", ["one", "population", "lbfgs"])
def test_steps_take_convolutions_that_add_in_a_fixed_order(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cudnn, seen = torch.backends.cudnn, []
    monkeypatch.setattr(cudnn, "deterministic", False)
    monkeypatch.setattr(cudnn, "benchmark", True)

    class Look(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            seen.append((cudnn.deterministic, cudnn.benchmark))
            return super().forward(input)

    data, solver = rows(), Stochastic(lr=0.05, max_epochs=2, tol=None)
    energies = [NetClassEnergy((4,), 3, Look(4, 3).double()) for _ in range(2)]
    if how == "population":
        fit_population(energies, data, SoftMin(), solver)
    else:
        chosen = solver if how == "one" else LBFGS(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            fit(energies[0], data, SoftMin(), chosen)
    assert (True, False) in seen and seen[-1] == (True, False)
    assert (cudnn.deterministic, cudnn.benchmark) == (False, True)
