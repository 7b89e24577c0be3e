"""Networks as energies: labels of rows, pixels, tokens and nodes; squares; sequences; equations."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.compute.rows import Ragged
from groundstate.energy import (
    ClassEnergy,
    Finite,
    RaggedOf,
    Real,
    ResidualEnergy,
    SequenceEnergy,
    SquaredEnergy,
    label_grid,
)
from groundstate.energy.networks.residual import SlopeIs
from groundstate.errors import ShapeError
from groundstate.infer import minimise
from groundstate.learn import NLL, Naive, SoftMin, learn


@pytest.fixture
def g() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_softmax_of_minus_energy_is_softmax_of_the_scores(g: torch.Generator) -> None:
    net = nn.Linear(4, 3).double()
    x = torch.randn(7, 4, generator=g, dtype=torch.float64)
    e = ClassEnergy(net, 4, 3)
    assert torch.equal(torch.softmax(-e.table("y", x=x), 1), torch.softmax(net(x), 1))
    assert torch.equal(minimise(e, "y", {"x": x})["y"], net(x).argmax(1))
    y = torch.randint(3, (7,), generator=g)
    loss = SoftMin()(e, {"x": x, "y": y}).loss
    assert torch.allclose(loss, F.cross_entropy(net(x), y, reduction="none"))


@pytest.mark.parametrize("normalise", [False, True])
def test_labels_of_pixels_add(g: torch.Generator, normalise: bool) -> None:
    net = nn.Conv2d(2, 3, 3, padding=1).double()
    e = ClassEnergy(net, (2, 4, 5), label_grid(3, 4, 5), normalise=normalise)
    x = torch.randn(6, 2, 4, 5, generator=g, dtype=torch.float64)
    y = torch.randint(3, (6, 4, 5), generator=g)
    pixels = F.cross_entropy(net(x), y, reduction="none")
    loss = NLL()(e, {"x": x, "y": y}).loss
    assert torch.allclose(loss, pixels.sum((1, 2)), atol=1e-10)
    # cross-entropy of (N, C, H, W) is that of (N·H·W, C)
    flat = F.cross_entropy(net(x).movedim(1, -1).reshape(-1, 3), y.reshape(-1), reduction="none")
    assert torch.allclose(pixels.flatten(), flat)
    assert torch.equal(minimise(e, "y", {"x": x})["y"], net(x).argmax(1))
    # any spatial size
    assert e(x=x[..., :3], y=y[..., :3]).shape == (6,)


def test_labels_of_tokens_stand_last_and_padding_is_ignored(g: torch.Generator) -> None:
    net = nn.Linear(4, 3).double()
    x = torch.randn(2, 5, 4, generator=g, dtype=torch.float64)
    y = torch.randint(3, (2, 5), generator=g)
    y[1, 3:] = -100
    e = ClassEnergy(net, (5, 4), label_grid(3, 5), -1, normalise=True, ignore=-100)
    truth = F.cross_entropy(net(x).transpose(1, 2), y, reduction="none").sum(1)
    assert torch.allclose(NLL()(e, {"x": x, "y": y}).loss, truth)
    learn(e, {"x": x, "y": y}, lr=0.1, epochs=20, seed=0)  # both rows count, without a warning
    assert float(e(x=x, y=y).detach().sum()) < float(truth.detach().sum())
    with pytest.raises(ValueError, match="ignore=-100 needs normalise=True"):
        ClassEnergy(net, (5, 4), label_grid(3, 5), -1, ignore=-100)


class Items(nn.Module):
    """A linear map of the items of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)

    def forward(self, x: Ragged) -> Ragged:
        return x.like(self.linear(x.values))


@pytest.mark.parametrize("normalise", [False, True])
def test_labels_of_nodes_add_within_their_row(g: torch.Generator, normalise: bool) -> None:
    net = Items()
    x = Ragged.of([torch.randn(n, 2, generator=g) for n in (2, 0, 3)])
    y = x.like(torch.randint(3, (5,), generator=g))
    e = ClassEnergy(net, RaggedOf(Real(2)), RaggedOf(Finite(3)), normalise=normalise)
    each = F.cross_entropy(net(x).values, y.values, reduction="none")
    truth = torch.stack([each[:2].sum(), torch.tensor(0.0), each[2:].sum()])
    assert torch.allclose(NLL()(e, {"x": x, "y": y}).loss, truth, atol=1e-6)
    assert torch.equal(e.best(x).values, net(x).values.argmax(1))


def test_wrong_sizes_name_both_shapes() -> None:
    e = ClassEnergy(nn.Linear(2, 4), 2, 3)
    with pytest.raises(ShapeError, match=r"\(5, 4\).*3 classes"):
        e(x=torch.zeros(5, 2), y=torch.zeros(5, dtype=torch.int64))
    pixels = ClassEnergy(nn.Conv2d(1, 3, 1), (1, 4, 4), label_grid(3, 4, 4))
    with pytest.raises(ShapeError, match=r"\(2, 4, 4\).*\(2, 4, 3\)"):
        pixels(x=torch.zeros(2, 1, 4, 4), y=torch.zeros(2, 4, 3, dtype=torch.int64))


def test_squared_energy_of_a_network(g: torch.Generator) -> None:
    """argmin_y e = f(x), and the gradient of the mean energy in f is (f − y)/N."""
    net = nn.Conv2d(1, 2, 3, padding=1).double()
    e = SquaredEnergy((1, 4, 4), (2, 4, 4), net)
    x = torch.randn(5, 1, 4, 4, generator=g, dtype=torch.float64)
    y = torch.randn(5, 2, 4, 4, generator=g, dtype=torch.float64)
    assert torch.equal(minimise(e, "y", {"x": x})["y"], net(x))
    f = net(x).detach().requires_grad_()
    mean = SquaredEnergy((2, 4, 4), (2, 4, 4), nn.Identity())(x=f, y=y).mean()
    (slope,) = torch.autograd.grad(mean, f)
    assert torch.allclose(slope, (f - y) / 5)
    constant = e.ability("log_partition", "y")
    assert constant is not None
    assert torch.allclose(constant(x=x), torch.tensor(16 * math.log(2 * math.pi)).double())
    config = e.config()
    assert config["d"] == [1, 4, 4] and config["m"] == [2, 4, 4]
    with pytest.raises(ValueError, match="need a module"):
        SquaredEnergy((1, 4, 4), 2)


class Cumulative(nn.Module):
    """Logits from the mean of all tokens so far, at once or one at a time."""

    def __init__(self, k: int = 3) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(k + 1, 6), nn.Linear(6, k)

    def forward(self, tokens: Tensor, x: Tensor | None = None) -> Tensor:
        h = self.embed(tokens).cumsum(1)
        return self.out(h if x is None else h + x[:, None])

    def start(self, rows: int, x: Tensor | None = None) -> dict[str, Tensor]:
        return {"h": self.out.weight.new_zeros(rows, 6) if x is None else x}

    def step(self, token: Tensor, cache: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        h = cache["h"] + self.embed(token)
        return self.out(h), {"h": h}


class Prefix(nn.Module):
    """The same without a memory."""

    def __init__(self, whole: Cumulative) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, tokens: Tensor, x: Tensor | None = None) -> Tensor:
        return self.whole(tokens, x)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_a_sequence_energy_is_normalised_and_steps_add_up(cached: bool, given: bool) -> None:
    torch.manual_seed(0)
    whole = Cumulative().double()
    net = whole if cached else Prefix(whole)
    e = SequenceEnergy(net, 3, 4, 6 if given else None)
    strings = e.spaces["y"].enumerate()  # 81 strings
    x = torch.randn(1, 6, dtype=torch.float64)
    values = {"x": x.expand(81, -1)} if given else {}
    total = e(y=strings, **values)
    assert torch.allclose((-total).exp().sum(), torch.tensor(1.0).double(), atol=1e-10)
    increments, state = e.step(None, **({"x": x} if given else {}))
    state, spent = state.pick(torch.zeros(81, dtype=torch.int64)), torch.zeros(81).double()
    increments = increments.expand(81, -1)
    for t in range(4):
        spent = spent + increments.gather(1, strings[:, t : t + 1]).squeeze(1)
        state = state.append(strings[:, t])
        if not state.done:
            increments, state = e.step(state, **values)
    assert torch.allclose(spent, total, atol=1e-10)


def test_ancestral_draws_have_the_right_frequencies() -> None:
    torch.manual_seed(0)
    e = SequenceEnergy(Cumulative(2), 2, 3)
    drawn = e.ancestral(4000, generator=torch.Generator().manual_seed(1))["y"]
    code = (drawn * torch.tensor([4, 2, 1])).sum(1).bincount(minlength=8).double()
    p = (-e(y=e.spaces["y"].enumerate())).exp().double().detach()
    assert float(((code - 4000 * p).square() / (4000 * p)).sum()) < 24.3  # chi², 7 degrees, 0.1 %


def test_what_stands_behind_the_end_does_not_count() -> None:
    torch.manual_seed(0)
    e = SequenceEnergy(Cumulative(), 3, 4, ignore=-100)
    y = torch.tensor([[0, 1, -100, -100]])
    other = torch.tensor([[0, 1, 2, 0]])
    short = e(y=other, lengths=torch.tensor([2]))
    assert torch.allclose(e(y=y), short)
    truth = F.cross_entropy(e.logits(other)[0, :2], torch.tensor([0, 1]), reduction="sum")
    assert torch.allclose(short, truth)
    with pytest.raises(ShapeError, match="one row of 3 logits per token"):
        SequenceEnergy(nn.Embedding(4, 5), 3, 4)(y=other)


def test_a_function_is_fitted_to_its_equation_and_one_value() -> None:
    """u' = 1 with u(0) = 0.5 has u = x + 0.5, where the energy is 0."""
    torch.manual_seed(0)
    u = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    e = ResidualEnergy(u, SlopeIs(1.0), 1)
    x = torch.linspace(-1, 1, 41)[:, None]
    y = torch.full_like(x, math.nan)
    y[20] = 0.5
    learn(e, {"x": x, "y": y}, Naive(), lr=0.01, epochs=600, batch_size=41, seed=0)
    assert float((u(x) - (x + 0.5)).detach().abs().max()) < 0.05
    exact = ResidualEnergy(nn.Linear(1, 1), SlopeIs(2.0), 1, where="all", weights=(2.0, 3.0))
    nn.init.constant_(exact.net.weight, 1.0)
    nn.init.zeros_(exact.net.bias)
    values = exact(x=torch.tensor([[1.0], [1.0]]), y=torch.tensor([[3.0], [math.nan]]))
    assert values.tolist() == [2 * 4 + 3 * 1, 3 * 1]
