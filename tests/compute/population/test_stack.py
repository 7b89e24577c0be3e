"""A population equals its members trained one by one in plain torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from groundstate.compute import (
    SGD,
    Adam,
    AdamW,
    Key,
    Population,
    StackedOptimizer,
    Step,
    WeightLine,
    by_vmap,
    seeded,
    stack,
    stack_batches,
)
from groundstate.errors import ShapeError, Unsupported

P, N = 3, 40
generator = torch.Generator().manual_seed(0)
X = torch.randn(N, 4, generator=generator, dtype=torch.float64)
y = torch.randint(3, (N,), generator=generator)
LR = [0.01, 0.05, 0.002]
KEYS = Key.of(0).split(P)


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def weighted(logits: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    losses = F.cross_entropy(logits, target, reduction="none")
    return losses.mean() if weight is None else (weight * losses).sum() / weight.sum()


def loss_of(population: Population) -> Callable[..., Tensor]:
    def loss(params: Any, buffers: Any, batch: Any, weight: Tensor | None) -> Tensor:
        x, target = batch
        return weighted(population.call(params, buffers, x), target, weight)

    return loss


def train(
    population: Population,
    batches: Callable[[int], Any],
    optimizer: StackedOptimizer,
    epochs: int,
    shared: bool = True,
    stop: Callable[[int], Tensor | None] = lambda epoch: None,
) -> Tensor:
    step = Step(population, by_vmap(population, loss_of(population), shared), optimizer)
    history = []
    for epoch in range(epochs):
        history += [step(batch, weight) for batch, weight in batches(epoch)]
        done = stop(epoch)
        if done is not None:
            optimizer.stop(done)
    return torch.stack(history)


RULES: list[tuple[Any, Any, dict[str, Sequence[float]], dict[str, Any]]] = [
    (SGD, torch.optim.SGD, {"lr": LR}, {}),
    (
        SGD,
        torch.optim.SGD,
        {"lr": LR, "momentum": [0.9, 0.5, 0.8], "weight_decay": [0.1, 0.0, 0.01]},
        {"nesterov": True},
    ),
    (SGD, torch.optim.SGD, {"lr": LR, "momentum": [0.9, 0.0, 0.5]}, {}),
    (Adam, torch.optim.Adam, {"lr": LR, "weight_decay": [0.0, 0.1, 0.01]}, {}),
    (AdamW, torch.optim.AdamW, {"lr": LR, "weight_decay": [0.0, 0.1, 0.01]}, {}),
]


@pytest.mark.parametrize(("ours", "theirs", "each", "same"), RULES)
def test_stacked_equals_looped(ours: Any, theirs: Any, each: Any, same: Any) -> None:
    population = Population.build(net, KEYS)
    members = population.unstack()
    weights = torch.rand(P, N, generator=torch.Generator().manual_seed(1), dtype=X.dtype)
    weights[0, :20], weights[1, 20:] = 0, 0  # folds

    step = Step(
        population, by_vmap(population, loss_of(population)), ours(population.flat, **each, **same)
    )
    history = torch.stack([step((X, y), weights) for _ in range(25)])

    for p, member in enumerate(members):
        options = {name: value[p] for name, value in each.items()}
        if same.get("nesterov") and not options.get("momentum"):
            continue
        optimizer = theirs(member.parameters(), **options, **same)
        for k in range(25):
            optimizer.zero_grad()
            value = weighted(member(X), y, weights[p])
            assert value.item() == pytest.approx(history[k, p].item(), abs=1e-9)
            value.backward()
            optimizer.step()
        for a, b in zip(population.member(p).parameters(), member.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_float32_agrees_to_1e5() -> None:
    population = Population.build(lambda: net().float(), KEYS)
    members = population.unstack()
    train(population, lambda e: [((X.float(), y), None)], Adam(population.flat, lr=LR), 20)
    for p, member in enumerate(members):
        optimizer = torch.optim.Adam(member.parameters(), lr=LR[p])
        for _ in range(20):
            optimizer.zero_grad()
            weighted(member(X.float()), y, None).backward()
            optimizer.step()
        out = population(X.float())[p]
        torch.testing.assert_close(out, member(X.float()).detach(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("ours", [SGD, Adam, AdamW])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_shared_and_own_hyperparameters_agree_under_a_schedule(ours: Any, decay: float) -> None:
    population = Population.build(net, KEYS)
    other = Population(population.unstack())
    one = ours(population.flat, lr=0.01, weight_decay=decay)
    each = ours(other.flat, lr=[0.01] * P, weight_decay=[decay] * P)
    for k in range(10):
        if k == 5:
            one.set_lr(0.003)
            each.set_lr([0.003] * P)
        if k == 8:
            one.set_lr([0.003, 0.0, 0.01])
            each.set_lr([0.003, 0.0, 0.01])
        Step(population, by_vmap(population, loss_of(population)), one)((X, y))
        Step(other, by_vmap(other, loss_of(other)), each)((X, y))
    torch.testing.assert_close(population.flat, other.flat, rtol=0, atol=1e-9)


def test_a_stopped_member_is_frozen_exactly() -> None:
    population = Population.build(net, KEYS)
    alone = population.unstack()[1]
    optimizer = AdamW(population.flat, lr=0.05, weight_decay=0.1)
    kept: list[Tensor] = []

    def stop(epoch: int) -> Tensor | None:
        if epoch == 4:
            kept.append(population.flat.clone())
            return torch.tensor([True, False, True])
        return None

    history = train(population, lambda e: [((X, y), None)], optimizer, 12, stop=stop)
    assert history.shape == (12, P)
    assert torch.equal(population.flat[0], kept[0][0]) and torch.equal(
        population.flat[2], kept[0][2]
    )
    other = torch.optim.AdamW(alone.parameters(), lr=0.05, weight_decay=0.1)
    for _ in range(12):
        other.zero_grad()
        weighted(alone(X), y, None).backward()
        other.step()
    for a, b in zip(population.member(1).parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_a_diverged_member_can_be_stopped() -> None:
    population = Population.build(net, KEYS)
    optimizer = Adam(population.flat, lr=0.01)
    optimizer.stop(torch.tensor([False, True, False]))
    before = population.flat[1].clone()
    grad = torch.zeros_like(population.flat)
    grad[1] = torch.nan
    optimizer.step(grad)
    assert torch.equal(population.flat[1], before) and population.flat.isfinite().all()


def test_members_with_their_own_rows() -> None:
    """Each member's fold is a weight line of its own; stacked it sees the batches it sees alone."""
    folds = WeightLine.of(X.numpy(), y.numpy()).folds(Key.of(1), P)
    lines = [WeightLine.of(X.numpy(), y.numpy(), weights=w) for w in folds]
    population = Population.build(net, KEYS)
    members = population.unstack()

    def epoch_batches(epoch: int) -> list[Any]:
        return [line.batches(Key.of(2).fold(epoch), 8) for line in lines]

    def feed(epoch: int) -> list[Any]:
        rows, weights = stack_batches(epoch_batches(epoch))
        return [((X[r], y[r]), w) for r, w in zip(rows, weights, strict=True)]

    train(population, feed, SGD(population.flat, lr=LR), 3, shared=False)
    for p, member in enumerate(members):
        optimizer = torch.optim.SGD(member.parameters(), lr=LR[p])
        for epoch in range(3):
            for rows, weight in epoch_batches(epoch)[p]:
                optimizer.zero_grad()
                weighted(member(X[rows]), y[rows], weight).backward()
                optimizer.step()
        for a, b in zip(population.member(p).parameters(), member.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_members_are_built_as_they_would_be_alone() -> None:
    large = Population.build(net, Key.of(0).split(5))
    small = Population.build(net, Key.of(0).split(2))
    assert torch.equal(large.flat[:2], small.flat)
    assert not torch.equal(large.flat[0], large.flat[1])


def test_stack_and_member_are_inverse() -> None:
    modules = Population.build(net, KEYS).unstack()
    population = Population(modules)
    params, buffers = stack(modules)
    assert params["0.weight"].shape == (P, 8, 4) and buffers == {}
    for p, module in enumerate(modules):
        out = population.member(p)(X)
        assert torch.equal(out, module(X)) and torch.equal(params["0.bias"][p], module[0].bias)
    modules[0][0].weight.data.zero_()
    assert population.params["0.weight"][0].abs().sum() > 0


def test_buffers_move_with_their_member() -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).double()

    population = Population.build(make, KEYS)
    members = population.unstack()
    optimizer = SGD(population.flat, lr=0.1)
    step = Step(population, by_vmap(population, loss_of(population)), optimizer)
    step((X, y))
    optimizer.stop(torch.tensor([True, False, False]))
    step((X * 2, y))
    plain = [copy.deepcopy(m) for m in members]
    for p, member in enumerate(plain):
        other = torch.optim.SGD(member.parameters(), lr=0.1)
        for x in (X, X * 2)[: 1 if p == 0 else 2]:
            other.zero_grad()
            weighted(member(x), y, None).backward()
            other.step()
        torch.testing.assert_close(population.member(p)[1].running_mean, member[1].running_mean)
        assert population.member(p)[1].num_batches_tracked == (1 if p == 0 else 2)


def test_dropout_differs_by_member_and_repeats_by_key() -> None:
    def run() -> Tensor:
        population = Population.build(
            lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3)).double(),
            [KEYS[0]] * 2,
        )
        optimizer = SGD(population.flat, lr=0.1)
        with seeded(Key.of(5)):
            train(population, lambda e: [((X, y), None)], optimizer, 3)
        return population.flat

    first = run()
    assert torch.equal(first, run()) and not torch.equal(first[0], first[1])


def test_shared_and_own_inputs() -> None:
    population = Population.build(net, KEYS)
    own = X.expand(P, *X.shape) * torch.tensor([1.0, 2.0, 3.0]).view(P, 1, 1)
    torch.testing.assert_close(population(own, shared=False)[1], population(X * 2)[1])


def test_errors_teach() -> None:
    with pytest.raises(ShapeError, match="members 0 and 1 differ in 'weight'"):
        Population([nn.Linear(2, 3), nn.Linear(2, 4)])
    with pytest.raises(ShapeError, match="pass at least one"):
        Population([])
    with pytest.raises(Unsupported, match="parameters of one dtype"):
        Population([nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())])
    population = Population.build(net, KEYS)
    with pytest.raises(ShapeError, match="one for each of the 3 members"):
        SGD(population.flat, lr=[0.1, 0.2])
    with pytest.raises(TypeError, match="use SGD, Adam, AdamW, RMSprop, Adagrad or Adadelta"):
        StackedOptimizer(population.flat, lr=0.1).step(population.flat)
    with pytest.raises(Unsupported, match="capture=True records a CUDA graph"):
        Step(
            population,
            by_vmap(population, loss_of(population)),
            SGD(population.flat, lr=0.1),
            capture=True,
        )
