"""One step: accumulation, clipping, penalties, number formats, compilation, noise."""

from __future__ import annotations

import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import LinearEnergy, NetClassEnergy, SquaredEnergy
from groundstate.learn import (
    L1,
    L2,
    LBFGS,
    Callback,
    Checkpoint,
    ElasticNet,
    Naive,
    SoftMin,
    Stochastic,
    SumPenalty,
    fit,
    sgd,
)
from groundstate.learn.train.optimizers import OPTIMIZERS, Update
from groundstate.learn.train.precision import Scaler


def rows(
    n: int = 200, d: int = 4, k: int = 3, dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, d, generator=g, dtype=dtype)
    return {"x": x, "y": (x @ torch.randn(d, k, generator=g, dtype=dtype)).argmax(1)}


def trained(data: dict[str, Tensor], penalty: object = None, **settings: object) -> Tensor:
    e = LinearEnergy(4, 3).double()
    solver = Stochastic(**{"lr": 0.05, "batch_size": 32, "max_epochs": 3, "tol": None, **settings})
    fit(e, data, SoftMin(), solver, penalty=penalty, random_state=3)
    return e.W.detach()


class Gradients(Callback):
    """The gradient of every step, as the optimiser saw it."""

    def on_begin(self, run: object) -> None:
        self.seen: list[Tensor] = []

    def on_step(self, run: object) -> None:
        theta = [p.grad.reshape(-1) for p in run.energy.parameters()]  # type: ignore[attr-defined]
        self.seen.append(torch.cat(theta).clone())


def test_ragged_micro_batches_sum_to_the_full_gradient() -> None:
    data, whole, parts = rows(10), Gradients(), Gradients()
    fit(LinearEnergy(4, 3).double(), data, SoftMin(), Stochastic(sgd, batch_size=None, max_epochs=1),
        callbacks=[whole])  # fmt: skip
    solver = Stochastic(sgd, batch_size=4, accumulate=3, max_epochs=1)  # 4 + 4 + 2
    history = fit(LinearEnergy(4, 3).double(), data, SoftMin(), solver, callbacks=[parts])
    assert len(parts.seen) == 1 and len(history.objective) == 1
    torch.testing.assert_close(parts.seen[0], whole.seen[0], rtol=0, atol=1e-12)


def test_accumulation_counts_weights_and_penalty_once() -> None:
    data = rows(30)
    weight = torch.rand(30, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    out = []
    for settings in ({"batch_size": None}, {"batch_size": 3, "accumulate": 100}):
        e, solver = LinearEnergy(4, 3).double(), Stochastic(sgd, lr=0.5, max_epochs=4, **settings)
        h = fit(e, data, SoftMin(), solver, sample_weight=weight, penalty=L2(2.0), random_state=0)
        out.append((e.W.detach(), torch.tensor(h.objective, dtype=torch.float64)))
    torch.testing.assert_close(out[0], out[1], rtol=1e-10, atol=1e-12)


def test_accumulated_steps_of_an_epoch() -> None:
    solver = Stochastic(batch_size=7, accumulate=4, max_epochs=2, tol=None)
    history = fit(LinearEnergy(4, 3).double(), rows(100), SoftMin(), solver)
    assert len(history.objective) == 2 * 4  # 15 batches, by fours


def test_clipping() -> None:
    seen = Gradients()
    data = {"x": 100 * rows()["x"], "y": rows()["y"]}
    solver = Stochastic(sgd, clip_norm=0.5, max_epochs=2, batch_size=20, tol=None)
    fit(LinearEnergy(4, 3).double(), data, SoftMin(), solver, callbacks=[seen])
    norms = torch.stack([g.norm() for g in seen.seen])
    assert bool((norms <= 0.5 * (1 + 1e-6)).all()) and bool((norms > 0.49).any())
    fit(LinearEnergy(4, 3).double(), data, SoftMin(),
        Stochastic(sgd, clip_value=0.1, max_epochs=1, tol=None), callbacks=[seen])  # fmt: skip
    assert max(g.abs().max().item() for g in seen.seen) <= 0.1


class Hidden:
    """An optimiser whose name the trainer cannot see."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, parameters: list[Tensor], lr: float) -> torch.optim.Optimizer:
        return OPTIMIZERS[self.name](parameters, lr)


def test_l2_as_weight_decay_is_the_same_objective_and_path() -> None:
    data = rows()
    for make in ("sgd", "adam", "nesterov"):
        decayed, h1 = LinearEnergy(4, 3).double(), []
        graph, h2 = LinearEnergy(4, 3).double(), []
        for e, h, optimizer in ((decayed, h1, make), (graph, h2, Hidden(make))):
            solver = Stochastic(optimizer, lr=0.05, max_epochs=3, batch_size=50, tol=None)
            h += fit(e, data, SoftMin(), solver, penalty=L2(5.0), random_state=0).objective
        torch.testing.assert_close(decayed.W, graph.W, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(torch.tensor(h1), torch.tensor(h2), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "rmsprop", "adagrad"])
def test_l1_makes_exact_zeros_and_reaches_the_optimum(name: str) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(150, 8, generator=g, dtype=torch.float64)
    y = x[:, :2] @ torch.tensor([[2.0], [-1.0]], dtype=torch.float64)
    data = {"x": x, "y": y + 0.1 * torch.randn(150, 1, generator=g, dtype=torch.float64)}
    e = SquaredEnergy(8, 1).double()
    penalty = L1(30.0)
    lr = {"sgd": 0.3, "momentum": 0.03, "adam": 0.02, "rmsprop": 0.01, "adagrad": 0.5}[name]
    solver = Stochastic(name, lr=lr, batch_size=None, max_epochs=700, tol=None,
                        schedule=lambda done: 1 - 0.999 * done)  # fmt: skip
    fit(e, data, Naive(), solver, penalty=penalty, random_state=0)
    assert int((e.W == 0).sum()) == 6
    for p in e.parameters():
        p.grad = None
    (Naive()(e, data).loss.mean()).backward()
    assert float(penalty.distance(e, 1 / 150)) < 2e-3  # the optimality conditions
    assert float(e.b.grad.abs().max()) < 2e-3  # the intercept is free


def test_l1_without_prox_has_no_zeros_and_sums_split() -> None:
    data = rows()
    assert int((trained(data, L1(40.0), prox=False) == 0).sum()) == 0
    both = SumPenalty(L1(40.0, select="W"), L2(1.0, select="b"))
    assert int((trained(data, both, max_epochs=30) == 0).sum()) > 0
    twice = SumPenalty(L1(20.0), L1(20.0))  # no simple proximal map: subgradients
    assert int((trained(data, twice) == 0).sum()) == 0
    net = trained(data, ElasticNet(40.0, 0.9), max_epochs=30)
    assert int((net == 0).sum()) > 0
    assert torch.equal(trained(data, L1(0.0)), trained(data))


def test_half_precision_learns_as_well() -> None:
    data = rows(400, dtype=torch.float32)
    final = {}
    for precision in ("32", "tf32", "bf16", "fp16"):
        e = NetClassEnergy(4, 3, (16,))
        solver = Stochastic(lr=0.01, batch_size=50, max_epochs=15, tol=None, precision=precision)
        weight = torch.ones(400) if precision == "bf16" else None
        history = fit(e, data, SoftMin(), solver, sample_weight=weight, random_state=0)
        assert all(p.dtype == torch.float32 for p in e.parameters())
        assert history.about["precision"] == precision
        final[precision] = sum(history.objective[-8:]) / 8
    assert final["tf32"] == final["32"]
    for name in ("bf16", "fp16"):
        assert final[name] == pytest.approx(final["32"], abs=0.03)


@pytest.mark.slow
def test_a_thousand_steps_in_half_precision_stay_finite() -> None:
    data = rows(64, dtype=torch.float32)

    def final(precision: str, seed: int) -> float:
        e = NetClassEnergy(4, 3, (8,), generator=torch.Generator().manual_seed(seed))
        solver = Stochastic(lr=0.01, batch_size=16, max_epochs=250, tol=None, precision=precision)
        history = fit(e, data, SoftMin(), solver, random_state=seed)
        assert all(map(math.isfinite, history.objective)) and len(history.objective) == 1000
        return sum(history.objective[-40:]) / 40

    seeds = [final("32", seed) for seed in range(4)]
    spread = max(seeds) - min(seeds)
    for precision in ("bf16", "fp16"):
        assert abs(final(precision, 0) - seeds[0]) <= spread


def test_overflow_skips_the_step_and_is_counted() -> None:
    data = rows(64, dtype=torch.float32)
    e = NetClassEnergy(4, 3, (16,))

    class Overflow(Callback):
        def on_step(self, run: object) -> None:
            hook = run.energy.net.register_full_backward_hook  # type: ignore[attr-defined]
            if run.total_steps == 5:  # type: ignore[attr-defined]
                self.handle = hook(lambda m, i, o: (i[0],))
                self.kept = [p.detach().clone() for p in e.parameters()]
                e.net.layers[0].weight.register_hook(self._spoil)

        def _spoil(self, grad: Tensor) -> Tensor:
            if not getattr(self, "done", False):
                self.done = True
                return grad * float("inf")
            return grad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = fit(e, data, SoftMin(), Stochastic(batch_size=16, max_epochs=4, tol=None,
                      precision="fp16", clip_norm=1.0), callbacks=[Overflow()])  # fmt: skip
    assert history.about["skipped"] >= 1
    assert all(bool(torch.isfinite(p).all()) for p in e.parameters())


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "momentum"])
def test_scaled_steps_are_those_of_torch_to_the_last_bit(name: str) -> None:
    g = torch.Generator().manual_seed(0)
    start = torch.randn(6, 3, generator=g)
    slopes = torch.randn(12, 6, 3, generator=g)
    slopes[4, 0, 0], slopes[5, 1, 1] = float("inf"), float("nan")

    def run(ours: bool) -> tuple[Tensor, float, int]:
        theta = nn.Parameter(start.clone())
        optimizer = OPTIMIZERS[name]([theta], 0.1)
        scaler, update = Scaler(torch.device("cpu")), Update(optimizer)
        for slope in slopes:
            theta.grad = None
            scaler.scale((theta * slope).sum()).backward()
            if ours:
                scaler.advance(update)
            else:
                scaler.step(optimizer)
                scaler.update()
        return theta.detach(), scaler.get_scale(), int(scaler.skipped)

    (theta, scale, skipped), torchs = run(True), run(False)
    assert torch.equal(theta, torchs[0])
    assert (scale, skipped) == torchs[1:] == (2.0**14, 2)


def test_dropout_depends_on_the_seed_alone() -> None:
    data = rows(100, dtype=torch.float32)

    class Draws(Callback):
        def on_step(self, run: object) -> None:
            torch.rand(3)  # a callback that draws must not change the result

    def run(seed: int, *callbacks: Callback) -> Tensor:
        torch.manual_seed(7)
        net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
        fit(NetClassEnergy(4, 3, net), data, SoftMin(), Stochastic(batch_size=20, max_epochs=2),
            callbacks=callbacks, random_state=seed)  # fmt: skip
        return torch.cat([p.detach().reshape(-1) for p in net.parameters()])

    torch.manual_seed(123)
    before = torch.get_rng_state()
    first = run(0)
    assert torch.equal(first, run(0, Draws())) and not torch.equal(first, run(1))
    torch.manual_seed(123)
    assert torch.equal(before, torch.get_rng_state())


def test_compiled_equals_eager_and_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(50)
    compiled: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        compiled.append(1)
        return graph.forward

    net = nn.Module.compile
    monkeypatch.setattr(nn.Module, "compile", lambda m, **kw: net(m, backend=backend, **kw))
    out = []
    for wish in (False, True):
        e = NetClassEnergy(4, 3, (8,), generator=torch.Generator().manual_seed(0)).double()
        solver = Stochastic(batch_size=16, max_epochs=3, tol=None, compile=wish)  # 16 16 16 2
        fit(e, data, SoftMin(), solver, random_state=0)
        assert e.net._compiled_call_impl is None
        out.append(torch.cat([p.detach().reshape(-1) for p in e.parameters()]))
    torch.testing.assert_close(out[0], out[1], rtol=1e-5, atol=1e-8)
    assert 1 <= len(compiled) <= 2

    def broken(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(nn.Module, "compile", lambda m, **kw: net(m, backend=broken, **kw))
    e = NetClassEnergy(4, 3, (8,), generator=torch.Generator().manual_seed(0)).double()
    with pytest.warns(RuntimeWarning, match="torch.compile failed .*no compiler here") as caught:
        fit(e, data, SoftMin(), Stochastic(batch_size=16, max_epochs=3, tol=None, compile=True),
            random_state=0)  # fmt: skip
    assert len(caught) == 1
    assert torch.equal(torch.cat([p.detach().reshape(-1) for p in e.parameters()]), out[0])


def test_containers_of_torch_are_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        graphs.append(1)
        return graph.forward

    own = nn.Module.compile
    monkeypatch.setattr(nn.Module, "compile", lambda m, **kw: own(m, backend=backend, **kw))
    out = []
    for wish in (False, True, True):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 3)).double()
        solver = Stochastic(batch_size=16, max_epochs=3, tol=None, compile=wish)  # 16 16 16 2
        fit(NetClassEnergy(4, 3, net), rows(50), SoftMin(), solver, random_state=0)
        assert net._compiled_call_impl is None and type(net[2]) is nn.Dropout
        out.append(torch.cat([p.detach().reshape(-1) for p in net.parameters()]))
    assert 1 <= len(graphs) <= 2  # two runs: no more than one recompilation
    for other in out[1:]:
        torch.testing.assert_close(out[0], other, rtol=1e-9, atol=1e-12)


def test_dropout_is_the_same_alone_and_when_resumed_at_any_step(tmp_path: Path) -> None:
    def net() -> NetClassEnergy:
        torch.manual_seed(0)
        drop = nn.Dropout(0.4)
        inner = nn.Sequential(
            nn.Linear(4, 8), nn.ReLU(), drop, nn.Linear(8, 8), drop, nn.Dropout(0.0)
        )
        return NetClassEnergy(4, 3, nn.Sequential(inner, nn.Linear(8, 3))).double()

    class Stop(Callback):
        def on_step(self, run: Any) -> bool:
            return bool(run.total_steps == 7)

    out = []
    plan: list[list[Any]] = [
        [],
        [Checkpoint(tmp_path, every_steps=1), Stop()],
        [Checkpoint(tmp_path)],
    ]
    for callbacks in plan:
        torch.manual_seed(len(out))  # what the process drew before does not matter
        energy = net()
        before = energy.state_dict().keys()
        fit(energy, rows(50), SoftMin(), Stochastic(batch_size=16, max_epochs=4, tol=None),
            callbacks=callbacks, random_state=0)  # fmt: skip
        assert energy.state_dict().keys() == before
        out.append(torch.cat([p.detach().reshape(-1) for p in energy.parameters()]))
    assert torch.equal(out[0], out[2]) and not torch.equal(out[0], out[1])


def test_running_statistics_move_once_per_batch() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)).double()
    fit(NetClassEnergy(4, 3, net), rows(60), SoftMin(), Stochastic(batch_size=20, max_epochs=4))
    assert int(net[1].num_batches_tracked) == 12


def test_threads_and_versions_are_said() -> None:
    small = fit(NetClassEnergy(4, 3, (8,)).double(), rows(), SoftMin(), Stochastic(max_epochs=1))
    assert small.about["threads"] == 1 and small.about["device"] == "cpu"
    assert set(small.about["versions"]) == {"groundstate", "torch", "numpy"}
    assert len(small.about["seed"]) == 32 and small.about["skipped"] == 0


def test_penalised_optimum_of_the_trainer_is_that_of_lbfgs() -> None:
    data, exact = rows(), LinearEnergy(4, 3).double()
    fit(exact, data, SoftMin(), LBFGS(tol=1e-10), penalty=L2(4.0))
    W = trained(data, L2(4.0), optimizer=partial(sgd, momentum=0.9), lr=0.5, batch_size=None,
                max_epochs=400)  # fmt: skip
    torch.testing.assert_close(W, exact.W.detach(), rtol=0, atol=1e-5)
