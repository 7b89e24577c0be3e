"""Update rules in NumPy: the numbers of ½θ² from 1 with rate .1, and torch's own steps."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from groundstate.learn.train import reference_numpy as ref

# rule, options, three steps
NUMBERS: list[tuple[str, dict[str, Any], list[float]]] = [
    ("gd", {}, [0.9, 0.81, 0.729]),
    ("momentum", {}, [0.9, 0.72, 0.486]),
    ("momentum", {"ema": True}, [0.99, 0.9711, 0.944379]),
    ("momentum", {"nesterov": True}, [0.81, 0.5751, 0.327321]),
    ("look_ahead", {}, [0.9, 0.729, 0.51759]),
    ("adagrad", {}, [0.9, 0.83310353, 0.78045618]),
    ("rmsprop", {"alpha": 0.9}, [0.68377224, 0.49887062, 0.36918057]),
    ("adadelta", {"lr": 1.0}, [0.99683774, 0.9935982, 0.99030908]),
    ("adam", {}, [0.9, 0.80041223, 0.70158627]),
    ("adamw", {"weight_decay": 0.1}, [0.89, 0.78157186, 0.67510122]),
]


@pytest.mark.parametrize(("rule", "options", "want"), NUMBERS)
def test_three_steps(rule: str, options: dict[str, Any], want: list[float]) -> None:
    path = ref.run(rule, lambda x: x, 1.0, 3, **{"lr": 0.1, **options})
    assert path[1:].tolist() == pytest.approx(want, abs=5e-9)


Make = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]
TORCH: list[tuple[str, dict[str, Any], Make]] = [
    ("gd", {}, lambda p: torch.optim.SGD(p, 0.1)),
    ("momentum", {}, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    (
        "momentum",
        {"nesterov": True},
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    ),
    ("momentum", {"ema": True}, lambda p: torch.optim.SGD(p, 0.1 * (1 - 0.9), momentum=0.9)),
    ("adagrad", {}, lambda p: torch.optim.Adagrad(p, 0.1)),
    ("rmsprop", {}, lambda p: torch.optim.RMSprop(p, 0.1)),
    ("adadelta", {}, lambda p: torch.optim.Adadelta(p, 0.1)),
    ("adam", {}, lambda p: torch.optim.Adam(p, 0.1)),
    ("adam", {"weight_decay": 0.3}, lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.3)),
    ("adam", {"amsgrad": True}, lambda p: torch.optim.Adam(p, 0.1, amsgrad=True)),
    ("adamw", {"weight_decay": 0.3}, lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.3)),
]


@pytest.mark.parametrize(("rule", "options", "make"), TORCH)
def test_rules_are_torchs(rule: str, options: dict[str, Any], make: Make) -> None:
    A = np.array([1.0, 10.0, 0.3])
    start = np.array([1.0, -0.5, 2.0])
    path = ref.run(rule, lambda x: A * np.sin(x), start, 20, lr=0.1, **options)
    theta = torch.nn.Parameter(torch.tensor(start))
    optimiser = make([theta])
    for k in range(20):
        theta.grad = torch.tensor(A) * torch.sin(theta.detach())
        optimiser.step()
        np.testing.assert_allclose(theta.detach().numpy(), path[k + 1], rtol=0, atol=1e-12)
    names = set(optimiser.state[theta]) - {"step"}
    state: dict[str, Any] = {}
    ref.RULES[rule](start, A, state, **options)
    assert names <= set(state)  # remembered under the same names


def test_textbook_variants() -> None:
    g = np.array(1e-3)
    inside, outside = (
        ref.adam(np.array(0.0), g, {}, lr=1.0, eps=1e-4, inside=i) for i in (True, False)
    )
    assert -inside == pytest.approx(0.0995, abs=5e-5)
    assert -outside == pytest.approx(0.909, abs=5e-4)
    plain = ref.adam(np.array(0.0), np.array(1.0), {}, lr=1.0, correct=False)
    assert -plain == pytest.approx(3.1623, abs=5e-5)
    first = ref.adagrad(np.zeros(2), np.array([5.0, -1e-3]), {}, lr=0.1)
    assert first == pytest.approx([-0.1, 0.1], abs=1e-6)  # rate times sign
    no_root = ref.adagrad(np.array(0.0), np.array(2.0), {}, lr=1.0, root=False)
    assert -no_root == pytest.approx(0.5, abs=1e-9)
    assert ref.rmsprop(np.array(0.0), g, {}, inside=True) != ref.rmsprop(np.array(0.0), g, {})


def test_momentum_facts() -> None:
    path = ref.run("momentum", lambda x: np.ones_like(x), 0.0, 400, lr=0.1, mu=0.9)
    assert path[-2] - path[-1] == pytest.approx(0.1 / (1 - 0.9))  # constant gradient: lr·g/(1−μ)
    assert np.array_equal(
        ref.run("momentum", lambda x: x, 1.0, 5, mu=0.0), ref.run("gd", lambda x: x, 1.0, 5)
    )
    state: dict[str, Any] = {}
    theta = ref.momentum(np.array(0.0), np.array(1.0), state, 1.0, 0.9)
    ref.momentum(theta, np.array(-1.0), state, 1.0, 0.9)
    assert state["momentum_buffer"] == pytest.approx(-(1 - 0.9))  # opposite gradients do not cancel
    ahead = ref.run("look_ahead", lambda x: x, 1.0, 6, lr=0.1)
    torchs = ref.run("momentum", lambda x: x, 1.0, 6, lr=0.1, nesterov=True)
    v = -np.diff(ahead) / 0.1
    assert torchs[1:] == pytest.approx(ahead[1:] - 0.9 * 0.1 * v)  # one path, seen at two points


def test_rules_are_short() -> None:
    for name, rule in ref.RULES.items():
        lines = inspect.getsource(rule).splitlines()
        code = "\n".join(lines).split('"""')[-1].strip().splitlines()
        assert len(code) <= 15, name
    with pytest.raises(ValueError, match="rule must be one of gd, momentum"):
        ref.run("sophia", lambda x: x, 1.0, 1)
