"""The written-out passes and the compiled step against torch's own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from groundstate.compute import SGD, Adam, AdamW, Key, Population, StackedOptimizer
from groundstate.compute.dropout import KeyedDropout, keep, keyed_dropout
from groundstate.compute.population.dense import ACTIVATIONS, Dense, read_layers
from groundstate.compute.population.dense_numba import BACKWARD, FORWARD, HEADS, MASKS, ROW_SUMS
from groundstate.compute.population.named import optimizer_named
from groundstate.compute.population.optimizers import Adagrad, RMSprop
from groundstate.compute.population.update import StepScalars
from groundstate.compute.population.update_numba import UPDATE
from groundstate.errors import Unsupported

P, N = 3, 17
KEYS = Key.of(0).split(P)
g = torch.Generator().manual_seed(0)
X = torch.randn(N, 4, generator=g, dtype=torch.float64)
LABELS = torch.randint(3, (N,), generator=g)
VALUES = torch.rand(N, 3, generator=g, dtype=torch.float64)
WEIGHT = torch.rand(P, N, generator=g, dtype=torch.float64)


def net(activation: type[nn.Module] = nn.Tanh, bias: bool = True) -> nn.Module:
    sizes = ((4, 6), (6, 5), (5, 3))
    parts: list[nn.Module] = []
    for a, b in sizes:
        parts += [nn.Linear(a, b, bias=bias), activation()]
    return nn.Sequential(*parts[:-1]).double()


def loss_of(head: str, out: Tensor, rows: Any, weight: Tensor | None) -> Tensor:
    if head == "softmax":
        each = F.cross_entropy(out, LABELS[rows], reduction="none")
    elif head == "squared":
        each = 0.5 * (out - VALUES[rows]).square().sum(1)
    else:
        each = F.binary_cross_entropy_with_logits(out, VALUES[rows], reduction="none").sum(1)
    return each.mean() if weight is None else (weight * each).sum() / weight.sum()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("head", ["softmax", "squared", "logistic"])
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_losses_and_gradients(activation: Any, head: Any, compiled: bool) -> None:
    population = Population.build(lambda: net(activation, bias=activation is not nn.SiLU), KEYS)
    layers = read_layers(population.skeleton)
    assert layers is not None
    program = Dense(population.params, population.buffers, layers, head)
    program.compiled = compiled
    grads = {name: torch.zeros_like(p) for name, p in population.params.items()}
    y = LABELS if head == "softmax" else VALUES
    rows = torch.stack(
        [torch.randperm(N, generator=torch.Generator().manual_seed(p))[:9] for p in range(P)]
    )
    for own, weight in ((None, None), (None, WEIGHT), (rows, WEIGHT[:, :9].contiguous())):
        x, target = (X, y) if own is None else (X[own], y[own])
        losses = program(x, target, weight, grads)
        for p, member in enumerate(population.unstack()):
            at = slice(None) if own is None else own[p]
            value = loss_of(head, member(X[at]), at, None if weight is None else weight[p])
            value.backward()
            assert losses[p].item() == pytest.approx(value.item(), abs=1e-12)
            for name, parameter in member.named_parameters():
                torch.testing.assert_close(grads[name][p], parameter.grad, rtol=0, atol=1e-12)
        if own is None and weight is None:
            torch.testing.assert_close(program.losses(x, target, None), losses, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [nn.Tanh, nn.ReLU])
def test_two_hundred_steps_in_single_precision(kind: Any) -> None:
    """Member = torch's own loop with fused Adam, 1e-5 after 200 steps."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(512, 10, generator=generator)
    y = (x @ torch.randn(10, 3, generator=generator)).argmax(1)
    make: Callable[[], nn.Module] = lambda: nn.Sequential(
        nn.Linear(10, 32), kind(), nn.Linear(32, 32), kind(), nn.Linear(32, 3)
    )
    population = Population.build(make, KEYS)
    members = population.unstack()
    optimizer = Adam(population.flat, lr=1e-3)
    grad = torch.zeros_like(population.flat)
    layers = read_layers(population.skeleton) or ()
    program = Dense(population.params, population.buffers, layers, "softmax")
    solo = [torch.optim.Adam(m.parameters(), fused=True) for m in members]
    for t in range(200):
        rows = torch.arange(32 * t, 32 * t + 32) % 512
        program(x[rows], y[rows], None, population.views(grad))
        optimizer.step(grad)
        for member, own in zip(members, solo, strict=True):
            own.zero_grad()
            F.cross_entropy(member(x[rows]), y[rows]).backward()
            own.step()
    torch.testing.assert_close(population.flat, Population(members).flat, rtol=0, atol=1e-5)


STEPS: list[tuple[type[StackedOptimizer], dict[str, Any]]] = [
    (Adam, {"lr": [0.1, 0.01, 0.02], "beta1": [0.9, 0.5, 0.0], "weight_decay": [0.0, 0.1, 0.0]}),
    (AdamW, {"lr": [0.1, 0.01, 0.02], "weight_decay": [0.0, 0.1, 0.5]}),
    (SGD, {"lr": 0.1}),
    (SGD, {"lr": [0.1, 0.2, 0.3], "momentum": [0.9, 0.0, 0.5]}),
    (SGD, {"lr": 0.1, "momentum": [0.9, 0.8, 0.5], "nesterov": True}),
    (RMSprop, {"lr": [0.1, 0.01, 0.02], "alpha": [0.9, 0.99, 0.5]}),
    (Adagrad, {"lr": [0.1, 0.01, 0.02]}),
]


def compiled_step(columns: StepScalars, grad: Tensor) -> Tensor:
    """One step of every member by the kernel; the penalties before it."""
    awake = columns.optimizer.active[:, 0].numpy()
    table = columns.columns_of(awake[None], None)[0]
    pulls = np.zeros(len(grad))
    for p in range(len(grad)):
        q, v = p % len(columns.mean), p % len(columns.square)
        UPDATE[0](
            columns.rule, columns.theta[p : p + 1], grad[p].numpy(), columns.blocks,
            columns.mean[q : q + 1], columns.square[v : v + 1], table[p : p + 1], awake[p : p + 1],
            columns.nesterov, pulls[p : p + 1],
        )  # fmt: skip
    return torch.from_numpy(pulls)


@pytest.mark.parametrize(("kind", "settings"), STEPS)
def test_the_compiled_step_is_the_plain_one(kind: Any, settings: dict[str, Any]) -> None:
    """Clipping, ridge, lasso, sleeping members: one pass = the steps written with torch."""
    population = Population.build(net, KEYS)
    other = Population(population.unstack())
    ridge, lasso = np.array([0.0, 0.3, 0.1]), np.array([0.02, 0.0, 0.05])
    names = {name for name in population.params if name.endswith("weight")}
    fast, plain = kind(population.flat, **settings), kind(other.flat, **settings)
    for optimizer in (fast, plain):
        optimizer.set_clip([0.5, 100.0, 2.0])
    update = StepScalars(population, fast, ridge, lasso, names)
    pull, plain.lasso = torch.zeros_like(other.flat), torch.zeros_like(other.flat)
    for name in names:
        other.views(pull)[name].add_(torch.from_numpy(ridge).view(-1, 1, 1))
        other.views(plain.lasso)[name].add_(torch.from_numpy(lasso).view(-1, 1, 1))
    generator = torch.Generator().manual_seed(3)
    for t in range(6):
        if t == 4:
            for optimizer in (fast, plain):
                optimizer.stop(torch.tensor([True, False, False]))
        grad = torch.zeros_like(other.flat)
        for view in other.views(grad).values():
            view.copy_(torch.randn(view.shape, generator=generator, dtype=view.dtype))
        before = population.flat.clone()
        pulls = compiled_step(update, grad)
        expected = 0.5 * (pull * before.square()).sum(1) + (plain.lasso * before.abs()).sum(1)
        live = torch.tensor([t < 4, True, True])
        torch.testing.assert_close(pulls[live], expected[live])
        plain.step(grad + pull * other.flat)
        torch.testing.assert_close(population.flat, other.flat, rtol=0, atol=1e-9)
    assert (population.flat[0] == 0).sum() > 0  # exact zeros


PARITY = {
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "adamw": torch.optim.AdamW,
    "momentum": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9),
    "nesterov": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9, nesterov=True),
}


@pytest.mark.parametrize("name", PARITY)
def test_optimisers_by_name_are_torchs(name: str) -> None:
    flat = torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=torch.float64)
    alone = [nn.Parameter(row.clone()) for row in flat]
    stacked = optimizer_named(name, flat, lr=[0.1, 0.01])
    solo = [PARITY[name]([p], lr=lr) for p, lr in zip(alone, (0.1, 0.01), strict=True)]
    for _ in range(4):
        stacked.step(flat.clone())
        for p, optimizer in zip(alone, solo, strict=True):
            p.grad = p.detach().clone()
            optimizer.step()
    torch.testing.assert_close(flat, torch.stack([p.detach() for p in alone]), rtol=0, atol=1e-12)


def test_numbers_of_the_rules() -> None:
    """f = ½θ², θ₀ = 1, step size 0.1, three steps."""
    table = {
        "adam": (0.9, 0.80041223, 0.70158627),
        "sgd": (0.9, 0.81, 0.729),
        "momentum": (0.9, 0.72, 0.486),
        "nesterov": (0.81, 0.5751, 0.327321),
        "adagrad": (0.9, 0.83310353, 0.78045618),
    }
    for name, values in table.items():
        flat = torch.ones(1, 1, dtype=torch.float64)
        optimizer = optimizer_named(name, flat, lr=0.1)
        for value in values:
            optimizer.step(flat.clone())
            assert flat.item() == pytest.approx(value, abs=1e-7)
    flat = torch.ones(1, 1, dtype=torch.float64)
    optimizer = RMSprop(flat, lr=0.1, alpha=0.9)
    for value in (0.68377224, 0.49887062, 0.36918057):
        optimizer.step(flat.clone())
        assert flat.item() == pytest.approx(value, abs=1e-7)


def test_networks_that_are_not_plain_are_not_read() -> None:
    assert read_layers(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))) is None
    assert read_layers(nn.Sequential(nn.Linear(2, 2), nn.GELU(approximate="tanh"))) is None
    assert read_layers(nn.Sequential(nn.Tanh(), nn.Linear(2, 2))) is None
    frozen = nn.Linear(2, 2)
    frozen.weight.requires_grad_(False)
    assert read_layers(frozen) is None
    layers = read_layers(nn.Sequential(nn.Linear(2, 3, bias=False), nn.Identity(), nn.ReLU()), "a.")
    assert layers is not None and layers[0].weight == "a.0.weight" and layers[0].bias is None


def test_keyed_masks_are_fair_and_scaled() -> None:
    layer = KeyedDropout(0.3, Key.of(5))
    out = layer(torch.ones(400, 50))
    assert out.unique().tolist() == pytest.approx([0.0, 1 / 0.7], abs=1e-6)
    assert (out == 0).double().mean().item() == pytest.approx(0.3, abs=0.01)
    assert torch.equal(layer.eval()(torch.ones(3)), torch.ones(3))
    # the mask of the first rows does not depend on how many rows there are
    a, b = KeyedDropout(0.5, Key.of(1)), KeyedDropout(0.5, Key.of(1))
    assert torch.equal(a(torch.ones(9, 7))[:4], b(torch.ones(4, 7)))
    with pytest.raises(Unsupported, match="pass 0 <= p < 1"):
        KeyedDropout(1.0, Key.of(0))


def test_dropout_in_the_written_passes_is_the_module_s() -> None:
    def make() -> nn.Module:
        return nn.Sequential(
            nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.4), nn.Linear(6, 5), nn.SiLU(), nn.Dropout(0.2),
            nn.Linear(5, 3),
        ).double()  # fmt: skip

    modules = [make() for _ in range(P)]
    with ExitStack() as stack:
        for module, key in zip(modules, KEYS, strict=True):
            stack.enter_context(keyed_dropout(module, key))
        population = Population(modules)
        layers = read_layers(population.skeleton)
        assert layers is not None and [la.dropout for la in layers] == ["2.", "5.", None]
        program = Dense(population.params, population.buffers, layers, "softmax")
        grads = {name: torch.zeros_like(p) for name, p in population.params.items()}
        seen = set()
        for _ in range(2):  # a new mask at every pass
            losses = program(X, LABELS, None, grads)
            seen.add(losses[0].item())
            for p, member in enumerate(modules):
                member.zero_grad()
                value = F.cross_entropy(member(X), LABELS)
                value.backward()
                assert losses[p].item() == pytest.approx(value.item(), abs=1e-12)
                for name, parameter in member.named_parameters():
                    torch.testing.assert_close(grads[name][p], parameter.grad, rtol=0, atol=1e-12)
        assert len(seen) == 2
    assert type(modules[0][2]) is nn.Dropout  # type: ignore[index]


def test_masks_on_any_layout() -> None:
    stream, count, cut = (torch.tensor(v) for v in (7, 3, 1 << 31))
    place = torch.arange(12)
    flat = keep(stream, count, cut, place, torch.float32)
    assert torch.equal(
        keep(stream, count, cut, place.view(3, 4).T, torch.float32).T.reshape(-1), flat
    )


def test_unknown_optimisers_get_one_sentence() -> None:
    with pytest.raises(Unsupported, match="'lion' is not there for populations; use adam"):
        optimizer_named("lion", torch.ones(1, 1), lr=0.1)
    with pytest.raises(Unsupported, match="'sgd' does not know"):
        optimizer_named("sgd", torch.ones(1, 1), lr=0.1, beta1=0.9)


def test_loops_for_one_and_for_many_threads_are_kept_apart_on_disk() -> None:
    for one, many in (*FORWARD.values(), *BACKWARD.values(), *HEADS.values(), MASKS, ROW_SUMS):
        names = {f._cache._impl.filename_base for f in (one, many)}
        assert len(names) == 2
