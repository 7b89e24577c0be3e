"""Steps with both passes written out are the steps of automatic differentiation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkClassEnergy, NetworkEnergy
from groundstate.learn import L1, L2, NLL, Naive, SoftMin, Stochastic, fit
from groundstate.learn.base import Batch, Problem, Rule
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.rules.margins.margin import Margin
from groundstate.learn.train.checkpoint import Checkpoint
from groundstate.learn.train.dense import WrittenStep, written_head, written_layers, written_step
from groundstate.learn.train.run import Training
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.heads.base import DistributionHead

D = 5


def rows(n: int = 70, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, D, generator=generator, dtype=dtype)
    return x, torch.sin(x @ torch.randn(D, 3, generator=generator, dtype=dtype))


def net(outputs: int, hidden: tuple[int, ...] = (7, 6), kind: str = "relu", **more: Any) -> MLP:
    return MLP(D, hidden, outputs, kind, generator=torch.Generator().manual_seed(1), **more)


def case(head: str, dtype: torch.dtype, **more: Any) -> tuple[Energy, Rule, Batch]:
    x, f = rows(dtype=dtype)
    if head == "softmax":
        return NetworkClassEnergy(D, 3, net(3, **more)), SoftMin(), {"x": x, "y": f.argmax(1)}
    if head == "single":
        y = (f[:, 0] > 0).long()
        return NetworkClassEnergy(D, 2, net(1, **more)), NLL(), {"x": x, "y": y}
    if head == "bernoulli":
        y = (f > 0).to(dtype)
        return NetworkEnergy(D, DistributionHead("bernoulli", 3), net(3, **more)), NLL(over="y"), {
            "x": x, "y": y,
        }  # fmt: skip
    return NetworkEnergy(D, LocationHead("squared_error", 3), net(3, **more)), Naive(over="y"), {
        "x": x, "y": f,
    }  # fmt: skip


class Watch(Callback):
    """Notes whether the steps of an epoch were written out; a hook on a module forbids it."""

    def __init__(self, forbid: bool) -> None:
        self.forbid, self.seen = forbid, 0

    def on_begin(self, run: Run) -> None:
        if self.forbid:
            module: Any = run.energy.net
            self.handle = module.register_forward_hook(lambda *_: self._count())

    def _count(self) -> None:
        self.seen += 1


def learned(
    head: str, forbid: bool, dtype: torch.dtype = torch.float64, weighted: bool = False,
    penalty: Any = None, kind: str = "relu", hidden: tuple[int, ...] = (7, 6),
    dropout: float = 0.0, bias: bool = True, **settings: Any,
) -> tuple[Tensor, list[float]]:  # fmt: skip
    energy, rule, data = case(head, dtype, kind=kind, hidden=hidden, dropout=dropout, bias=bias)
    energy = energy.to(dtype)
    weight = torch.arange(len(data["x"]), dtype=dtype) % 3 + 0.5 if weighted else None
    watch = Watch(forbid)
    history = fit(
        energy, data, rule,
        Stochastic(**{"batch_size": 16, "max_epochs": 4, "tol": None, "lr": 1e-2, **settings}),
        sample_weight=weight, penalty=penalty, callbacks=[watch], random_state=0,
    )  # fmt: skip
    assert (watch.seen > 0) == forbid
    return torch.cat([p.detach().reshape(-1) for p in energy.parameters()]), history.objective


def same(tolerance: float = 1e-12, **settings: Any) -> None:
    ours, theirs = (learned(forbid=forbid, **settings) for forbid in (False, True))
    torch.testing.assert_close(ours[0], theirs[0], rtol=tolerance, atol=tolerance)
    assert ours[1] == pytest.approx(theirs[1], rel=tolerance)


@pytest.mark.parametrize("head", ["softmax", "single", "bernoulli", "squared"])
@pytest.mark.parametrize("weighted", [False, True])
def test_written_steps_are_those_of_autograd(head: str, weighted: bool) -> None:
    same(head=head, weighted=weighted)
    same(1e-5, head=head, weighted=weighted, dtype=torch.float32)


@pytest.mark.parametrize("kind", ["tanh", "sigmoid", "silu", "gelu", "softplus", "identity"])
def test_all_activations(kind: str) -> None:
    same(head="softmax", kind=kind)


@pytest.mark.parametrize("hidden", [(), (9,), (4, 5, 6)])
def test_all_depths_with_and_without_biases(hidden: tuple[int, ...]) -> None:
    same(head="softmax", hidden=hidden)
    same(head="squared", hidden=hidden, bias=False)


@pytest.mark.parametrize("kind", ["relu", "gelu"])
def test_dropout_draws_the_same_masks(kind: str) -> None:
    same(head="softmax", dropout=0.4, kind=kind)
    assert not torch.equal(learned("softmax", False, dropout=0.4)[0], learned("softmax", False)[0])


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "nesterov"},
        {"optimizer": "rmsprop"},
        {"clip_norm": 0.05},
        {"clip_value": 0.01},
        {"schedule": "cosine"},
        {"average": 0.5},
        {"batch_size": None},
        {"penalty": L2(3.0)},
        {"penalty": L1(0.5)},
        {"penalty": L2(1.0) + L1(0.5), "clip_norm": 1.0},
    ],
    ids=str,
)
def test_all_that_surrounds_a_step_stays(settings: dict[str, Any]) -> None:
    same(1e-11, head="softmax", **settings)


def test_resume_reaches_the_same_bits(tmp_path: Path) -> None:
    class Stop(Callback):
        def on_step(self, run: Run) -> bool:
            return run.total_steps == 8

    def run(*callbacks: Callback) -> Tensor:
        energy, rule, data = case("softmax", torch.float64, dropout=0.3)
        solver = Stochastic(batch_size=16, max_epochs=5, tol=None, lr=1e-2)
        fit(energy.double(), data, rule, solver, callbacks=list(callbacks), random_state=0)
        return torch.cat([p.detach().reshape(-1) for p in energy.parameters()])

    whole = run()
    run(Checkpoint(tmp_path, every_steps=1), Stop())
    assert torch.equal(run(Checkpoint(tmp_path, every_steps=1)), whole)


def test_what_is_not_written_out_is_differentiated() -> None:
    x, f = rows()
    y = f.argmax(1)

    class Double(NetworkClassEnergy):
        def scores(self, x: Tensor) -> Tensor:
            return 2 * super().scores(x)

    data = {"x": x, "y": y}
    plain = NetworkClassEnergy(D, 3, net(3).double())
    assert written_head(plain, SoftMin(), data) == "softmax"
    assert written_head(plain, SoftMin(0.5), data) is None
    assert written_head(plain, Margin(), data) is None
    assert written_head(Double(D, 3, net(3).double()), SoftMin(), data) is None
    assert written_head(plain, SoftMin(), {"x": x, "y": torch.where(y == 0, -1, y)}) is None
    act, first = nn.ReLU(), nn.Linear(D, D)
    odd = [
        net(3, residual=True), net(3, norm="layer"), net(3, norm="batch"), net(3, kind="elu"),
        net(3, out_activation="tanh"), nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 3)),
        nn.Sequential(first, act, nn.Linear(D, D), act, nn.Linear(D, 3)),
        nn.Sequential(first, nn.ReLU(), first, nn.ReLU(), nn.Linear(D, 3)),
    ]  # fmt: skip
    assert [written_layers(NetworkClassEnergy(D, 3, module)) for module in odd] == [None] * len(odd)
    chain = nn.Sequential(nn.Sequential(first, nn.Tanh()), nn.Identity(), nn.Linear(D, 3))
    found = written_layers(NetworkClassEnergy(D, 3, chain))
    assert found is not None and [layer.activation for layer in found] == ["tanh", None]
    frozen = net(3).double()
    next(frozen.parameters()).requires_grad_(False)
    assert written_layers(NetworkClassEnergy(D, 3, frozen)) is None


def test_settings_that_need_a_graph() -> None:
    energy, rule, data = case("softmax", torch.float64)
    energy = energy.double()

    def step(penalty: Any = None, **settings: Any) -> Any:
        solver = Stochastic(**{"batch_size": 16, **settings})
        return written_step(Training(solver, Problem(energy, rule, data, penalty=penalty)))

    assert step() is not None
    assert step(accumulate=2) is None
    assert step(precision="bf16") is None
    assert step(L1(0.1), prox=False) is None
    assert step(L2(0.1), optimizer="adamw") is None


def test_parameters_that_move_to_other_memory_are_found_again() -> None:
    class Swap(Callback):
        def on_epoch(self, run: Run) -> None:
            for p in run.energy.parameters():
                p.data = p.data.clone()

    def run(*callbacks: Callback) -> Tensor:
        energy, rule, data = case("squared", torch.float64)
        fit(energy.double(), data, rule, Stochastic(max_epochs=4, batch_size=16, tol=None),
            callbacks=list(callbacks), random_state=0)  # fmt: skip
        return torch.cat([p.detach().reshape(-1) for p in energy.parameters()])

    assert torch.equal(run(Swap()), run())


@pytest.mark.parametrize("head", ["softmax", "single", "bernoulli", "squared"])
def test_terms_are_those_of_the_rule(head: str) -> None:
    energy, rule, data = case(head, torch.float64)
    layers = written_layers(energy.double())
    kind = written_head(energy, rule, data)
    assert layers is not None and kind is not None
    found = WrittenStep(energy, rule, layers, kind)(data, None, float(len(data["x"])))[1]()
    theirs = rule(energy.train(), data)
    for name in ("loss", "positive", "contrast"):
        torch.testing.assert_close(getattr(found, name), getattr(theirs, name).detach())
