"""Optimisers by name: the notes' number tables, and steps that are torch's to the last bit."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
import torch

from groundstate.energy import NetClassEnergy
from groundstate.errors import Unsupported
from groundstate.learn import SoftMin, Stochastic, fit
from groundstate.learn.train import reference_numpy as reference
from groundstate.learn.train.optimizers import OPTIMIZERS, Update, metric, optimizer_of

# three steps on e = theta²/2 from theta = 1 at lr = 0.1
TABLE = [
    ("sgd", {}, [0.9, 0.81, 0.729]),
    ("momentum", {}, [0.9, 0.72, 0.486]),
    ("nesterov", {}, [0.81, 0.5751, 0.327321]),
    ("adagrad", {}, [0.9, 0.83310353, 0.78045618]),
    ("rmsprop", {"alpha": 0.9}, [0.68377224, 0.49887062, 0.36918057]),
    ("adadelta", {"lr": 1.0, "rho": 0.9}, [0.99683774, 0.9935982, 0.99030908]),
    ("adam", {}, [0.9, 0.80041223, 0.70158627]),
    ("adamw", {"weight_decay": 0.1}, [0.89, 0.78157186, 0.67510122]),
]


def path(make, steps: int = 3, **settings: object) -> list[float]:
    theta = torch.ones(1, dtype=torch.float64, requires_grad=True)
    update = Update(make([theta], **{"lr": 0.1, **settings}))
    seen = []
    for _ in range(steps):
        theta.grad = theta.detach().clone()
        update()
        seen.append(theta.item())
    return seen


@pytest.mark.parametrize(("name", "settings", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_numbers_of_the_notes(
    name: str, settings: dict[str, object], expected: list[float]
) -> None:
    assert path(OPTIMIZERS[name], **settings) == pytest.approx(expected, abs=2e-8)


def test_averaged_momentum_is_torchs_at_a_smaller_rate() -> None:
    assert path(OPTIMIZERS["momentum"], lr=0.01) == pytest.approx([0.99, 0.9711, 0.944379])


def test_look_ahead_nesterov_is_the_same_path_seen_elsewhere() -> None:
    theta, v, seen = 1.0, 0.0, []
    for _ in range(3):  # the notes' form: the gradient at the point ahead
        v = 0.9 * v + (theta - 0.1 * 0.9 * v)
        theta -= 0.1 * v
        seen.append((theta, theta - 0.1 * 0.9 * v))
    assert [s[0] for s in seen] == pytest.approx([0.9, 0.729, 0.51759])
    assert [s[1] for s in seen] == pytest.approx(path(OPTIMIZERS["nesterov"]))


def test_momentum_limits() -> None:
    assert path(partial(OPTIMIZERS["momentum"], momentum=0.0)) == path(OPTIMIZERS["sgd"])
    theta = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    update = Update(OPTIMIZERS["momentum"]([theta], lr=0.1))
    steps = []
    for _ in range(300):  # a constant gradient: the step grows to lr g / (1 - mu)
        before = theta.item()
        theta.grad = torch.ones_like(theta)
        update()
        steps.append(before - theta.item())
    assert steps[-1] == pytest.approx(0.1 / (1 - 0.9), rel=1e-9)
    other = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = OPTIMIZERS["momentum"]([other], lr=0.1)
    for g in (1.0, -1.0):  # opposite gradients leave -(1 - mu) g0 in v, not zero
        other.grad = torch.full_like(other, g)
        optimizer.step()
    assert optimizer.state[other]["momentum_buffer"].item() == pytest.approx(-(1 - 0.9))


def test_adam_limits() -> None:
    first = path(partial(OPTIMIZERS["adam"], betas=(0.0, 0.9)), steps=4)
    theta, v = 1.0, 0.0
    for t in range(1, 5):  # beta1 = 0 is RMSprop with bias correction
        v = 0.9 * v + 0.1 * theta * theta
        theta -= 0.1 * theta / ((v / (1 - 0.9**t)) ** 0.5 + 1e-8)
        assert first[t - 1] == pytest.approx(theta, rel=1e-7)
    raw = 0.1 / 0.001**0.5  # m / sqrt(v) without correction
    assert raw == pytest.approx(3.1623, abs=1e-4)
    assert path(partial(OPTIMIZERS["adam"], amsgrad=True))[0] == pytest.approx(0.9)


def test_adagrad_rates_do_not_grow() -> None:
    theta = torch.tensor([2.0, -3.0], dtype=torch.float64, requires_grad=True)
    optimizer = OPTIMIZERS["adagrad"]([theta], lr=0.1)
    start, rates = theta.detach().clone(), []
    for i in range(5):
        theta.grad = theta.detach().clone()
        optimizer.step()
        if i == 0:
            torch.testing.assert_close(start - theta.detach(), 0.1 * start.sign())
        rates.append(metric(optimizer, theta))
    assert all(bool((b <= a).all()) for a, b in pairwise(rates))


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "momentum", "nesterov"])
def test_lean_update_is_torchs_step_bit_for_bit(name: str) -> None:
    g = torch.Generator().manual_seed(0)
    start = [torch.randn(7, 5, generator=g), torch.randn(5, generator=g)]
    grads = [[torch.randn(p.shape, generator=g) for p in start] for _ in range(6)]

    def run(lean: bool) -> list[torch.Tensor]:
        theta = [p.clone().requires_grad_() for p in start]
        optimizer = OPTIMIZERS[name](theta, 0.05, weight_decay=0.01)
        step = Update(optimizer) if lean else optimizer.step
        for i, row in enumerate(grads):
            optimizer.param_groups[0]["lr"] = 0.05 / (i + 1)
            for p, grad in zip(theta, row, strict=True):
                p.grad = grad.clone()
            step()
        return [p.detach() for p in theta]

    for a, b in zip(run(True), run(False), strict=True):
        assert torch.equal(a, b)


def test_lean_update_follows_parameters_without_gradient() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    update = Update(OPTIMIZERS["adam"]([a, b], 0.1))
    for touched in (True, True, False, True):
        a.grad = a.detach().clone()
        b.grad = b.detach().clone() if touched else None
        update()
    assert update.optimizer.state[a]["step"] == 4 and update.optimizer.state[b]["step"] == 3


def test_names_classes_and_partials_train() -> None:
    g = torch.Generator().manual_seed(0)
    data = {"x": torch.randn(60, 4, generator=g), "y": torch.arange(60) % 3}
    for wish in (*OPTIMIZERS, torch.optim.NAdam, partial(OPTIMIZERS["adam"], betas=(0.8, 0.9))):
        energy = NetClassEnergy(4, 3, (8,))
        lr = 1.0 if wish == "adadelta" else 0.02
        solver = Stochastic(wish, lr=lr, batch_size=20, max_epochs=30, tol=None)
        history = fit(energy, data, SoftMin(), solver, random_state=0)
        assert history.objective[-1] < history.objective[0], wish


def test_unknown_name_lists_the_known() -> None:
    with pytest.raises(Unsupported, match="optimizer 'adan' is not known; use one of adam, adamw"):
        optimizer_of("adan")


REFERENCE: dict[str, tuple[str, dict[str, object], dict[str, object]]] = {
    "sgd": ("gd", {}, {}),
    "momentum": ("momentum", {}, {}),
    "nesterov": ("momentum", {"nesterov": True}, {}),
    "adagrad": ("adagrad", {}, {}),
    "rmsprop": ("rmsprop", {"alpha": 0.9}, {"alpha": 0.9}),
    "adadelta": ("adadelta", {}, {}),
    "adam": ("adam", {}, {}),
    "adamw": ("adamw", {"weight_decay": 0.1}, {"weight_decay": 0.1}),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_fast_optimisers_follow_the_reference(name: str) -> None:
    rule, options, settings = REFERENCE[name]
    slow = reference.run(rule, lambda t: t, 1.0, 20, lr=0.1, **options)[1:]
    assert path(OPTIMIZERS[name], steps=20, **settings) == pytest.approx(slow.tolist(), rel=1e-9)


def test_epsilon_inside_the_root_is_only_in_the_reference() -> None:
    inside, outside = (
        reference.run("rmsprop", lambda t: t, 1.0, 1, lr=0.1, alpha=0.9, eps=0.01, inside=inside)[1]
        for inside in (True, False)
    )
    assert inside == pytest.approx(1 - 0.1 / (0.1 + 0.01) ** 0.5)
    assert outside == pytest.approx(1 - 0.1 / (0.1**0.5 + 0.01))
    with pytest.raises(ValueError, match="got 'adan'"):
        reference.run("adan", lambda t: t, 1.0, 1)
