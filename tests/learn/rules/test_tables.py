"""Rules on tables of energies: the numbers of the worked examples, identities and gradients."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from groundstate.energy import Energy, LinearEnergy, NetClassEnergy, SquaredEnergy, TableEnergy
from groundstate.errors import Unsupported
from groundstate.learn import (
    Contrast,
    FenchelYoung,
    Margin,
    Naive,
    Perceptron,
    SoftMin,
    ZeroOne,
    fenchel_young_loss,
    margin_loss,
    perceptron_loss,
    random_search,
    softmin_loss,
    zero_one,
)
from groundstate.learn.rules.negatives.table import All, Wrong

E123 = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64).repeat(3, 1)
Y = torch.arange(3)


def close(found: Tensor, expected: list[float], atol: float = 5e-7) -> bool:
    return torch.allclose(found, torch.tensor(expected, dtype=found.dtype), atol=atol, rtol=0)


def random_table(rows: int = 40, k: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    e = 3 * torch.randn(rows, k, generator=generator, dtype=torch.float64)
    return e, torch.randint(k, (rows,), generator=generator)


def linear(d: int = 3, k: int = 4) -> tuple[LinearEnergy, dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    energy = LinearEnergy(d, k).double()
    with torch.no_grad():
        for p in energy.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    x = torch.randn(7, d, generator=generator, dtype=torch.float64)
    return energy, {"x": x, "y": torch.randint(k, (7,), generator=generator)}


@pytest.mark.parametrize(
    ("T", "expected"),
    [
        (1.0, [0.407606, 1.407606, 2.407606]),
        (2.0, [1.360539, 2.360539, 3.360539]),
        (0.5, [0.071466, 1.071466, 2.071466]),
        (0.0, [0.0, 1.0, 2.0]),
        (math.inf, [-1.0, 0.0, 1.0]),
    ],
)
def test_softmin_numbers(T: float, expected: list[float]) -> None:
    assert close(softmin_loss(E123, Y, T, "none"), expected)


def test_softmin_is_cross_entropy() -> None:
    e, y = random_table()
    ours = softmin_loss(e, y, reduction="none")
    assert torch.allclose(ours, functional.cross_entropy(-e, y, reduction="none"), atol=1e-12)
    equal = softmin_loss(torch.zeros(1, 7), torch.tensor([3]))
    assert math.isclose(float(equal), math.log(7), abs_tol=1e-6)


def test_softmin_gradient() -> None:
    e, y = random_table()
    for T in (0.3, 1.0, 4.0):
        at = e.clone().requires_grad_()
        softmin_loss(at, y, T, "sum").backward()
        expected = functional.one_hot(y, 5) - torch.softmax(-e / T, 1)
        assert torch.allclose(at.grad, expected, atol=1e-12)
        assert float(at.grad.sum(1).abs().max()) < 1e-12
    cold = E123.clone().requires_grad_()
    softmin_loss(cold, Y, 0.01, "sum").backward()
    perceptron = E123.clone().requires_grad_()
    perceptron_loss(perceptron, Y, "sum").backward()
    assert float((cold.grad - perceptron.grad).abs().max()) < 1e-40


def test_softmin_half_precision_sums_in_float32() -> None:
    e = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.bfloat16)
    assert softmin_loss(e, torch.tensor([0]), 2.0, "none").dtype == torch.float32


def test_perceptron_numbers() -> None:
    assert close(perceptron_loss(E123, Y, "none"), [0.0, 1.0, 2.0])


def test_perceptron_update() -> None:
    """One step of the linear energy moves target and winner by η(‖x‖²+1) each."""
    energy = LinearEnergy(2, 2).double()
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[0.5, -1.0], [0.0, 0.0]], dtype=torch.float64))
        energy.b.copy_(torch.tensor([0.3, 0.0], dtype=torch.float64))
    x, y = torch.tensor([[1.0, 2.0]], dtype=torch.float64), torch.tensor([0])
    before = energy.table("y", x=x)[0].detach()
    assert math.isclose(float(before[0]), 1.2, abs_tol=1e-12)
    Perceptron()(energy, {"x": x, "y": y}).loss.sum().backward()
    with torch.no_grad():
        for p in energy.parameters():
            p -= 0.1 * p.grad
    after = energy.table("y", x=x)[0].detach()
    assert close(after, [0.6, float(before[1]) + 0.6], atol=1e-12)


def test_perceptron_stops_on_separable_data() -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(40) % 2
    x = torch.randn(40, 2, generator=generator, dtype=torch.float64) * 0.3
    x += torch.where(y[:, None] == 1, 2.0, -2.0)
    energy = LinearEnergy(2, 2).double()
    mistakes = 0
    for _ in range(10):
        for i in range(40):
            loss = Perceptron()(energy, {"x": x[i : i + 1], "y": y[i : i + 1]}).loss.sum()
            wrong = zero_one(energy.table("y", x=x[i : i + 1]), y[i : i + 1])
            mistakes += int(wrong)
            energy.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in energy.parameters():
                    p -= p.grad
    assert mistakes < 10
    assert float(zero_one(energy.table("y", x=x), y)) == 0.0


@pytest.mark.parametrize(
    ("m", "T", "expected"),
    [
        (1.0, 0.0, [0.0, 2.0, 3.0]),
        (1.5, 0.0, [0.5, 2.5, 3.5]),
        (1.0, 1.0, [0.861995, 2.239545, 3.349012]),
    ],
)
def test_margin_numbers(m: float, T: float, expected: list[float]) -> None:
    assert close(margin_loss(E123, Y, m, T=T, reduction="none"), expected)


def test_margin_is_the_hinge() -> None:
    s = torch.linspace(-3, 3, 25, dtype=torch.float64)
    e = torch.stack([s / 2, -s / 2], 1)  # class 1 wins for positive s
    for y, sign in ((1, 1.0), (0, -1.0)):
        found = margin_loss(e, torch.full((25,), y), reduction="none")
        assert torch.allclose(found, (1 - sign * s).clamp(min=0), atol=1e-12)


def test_margin_cost() -> None:
    e, y = random_table()
    cost = (torch.arange(5)[:, None] - torch.arange(5)).abs().double()
    target = e.gather(1, y[:, None])
    expected = (0.7 * cost[y] + target - e).max(1).values
    assert torch.allclose(margin_loss(e, y, 0.7, cost, reduction="none"), expected, atol=1e-12)
    soft = margin_loss(e, y, 0.7, cost, 2.0, "none")
    expected = 2 * torch.logsumexp((0.7 * cost[y] + target - e) / 2, 1)
    assert torch.allclose(soft, expected, atol=1e-12)


def test_margin_kink_has_no_gradient() -> None:
    e = torch.tensor([[1.0, 2.0]], requires_grad=True)
    margin_loss(e, torch.tensor([0]), 1.0).backward()
    assert not bool(e.grad.any())


@pytest.mark.parametrize("m", [0.0, -1.0, math.nan])
def test_margin_must_be_positive(m: float) -> None:
    with pytest.raises(ValueError, match="the margin must be positive, got m="):
        Margin(m)
    with pytest.raises(ValueError, match="the margin must be positive"):
        margin_loss(E123, Y, m)


def test_fenchel_young() -> None:
    e, y = random_table()
    assert torch.allclose(
        fenchel_young_loss(e, y, 1.0, reduction="none"), softmin_loss(e, y, reduction="none")
    )
    far = fenchel_young_loss(E123, Y, 2.0, reduction="none")
    assert float(far[0]) == 0.0 and bool((far[1:] > 0).all())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_reductions(reduction: str) -> None:
    e, y = random_table()
    for loss in (perceptron_loss, softmin_loss, margin_loss, zero_one, fenchel_young_loss):
        rows = loss(e, y, reduction="none")
        expected = {"mean": rows.mean(), "sum": rows.sum(), "none": rows}[reduction]
        assert torch.allclose(loss(e, y, reduction=reduction), expected)
        mean, total = loss(e, y), loss(e, y, reduction="sum")
        assert torch.allclose(total, len(y) * mean)
        parts = (loss(e[:10], y[:10]) * 10 + loss(e[10:], y[10:]) * 30) / 40
        assert torch.allclose(parts, mean)
    with pytest.raises(ValueError, match="reduction must be 'none', 'mean' or 'sum', got 'max'"):
        softmin_loss(e, y, reduction="max")


def test_zero_one() -> None:
    e, y = random_table()
    assert float(zero_one(e, y)) == float((e.argmin(1) != y).double().mean())
    assert float(zero_one(7.5 * e, y)) == float(zero_one(e, y))
    tied = torch.zeros(1, 3)
    assert float(zero_one(tied, torch.tensor([0]))) == 0.0
    energy, batch = linear()
    with pytest.raises(Unsupported, match="zero almost everywhere"):
        ZeroOne()(energy, batch)


def test_zero_one_is_flat_and_random_search_lowers_it() -> None:
    energy, batch = linear()

    def loss() -> Tensor:
        return zero_one(energy.table("y", x=batch["x"]), batch["y"])

    base = float(loss())
    with torch.no_grad():
        energy.W += 1e-9
    assert float(loss()) == base
    found = random_search(energy, loss, 300, generator=torch.Generator().manual_seed(0))
    assert found.loss == float(loss()) < base
    assert bool((found.trace.diff() <= 0).all())


RULES = [
    Naive(),
    Perceptron(),
    Margin(),
    Margin(1.5, T=0.5),
    SoftMin(),
    SoftMin(0.3),
    SoftMin(math.inf),
    SoftMin(0.0),
    FenchelYoung(),
]


@pytest.mark.filterwarnings("ignore:Naive lowers")
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_identity_and_gradient(rule: object) -> None:
    """L = e − R to 1e-12, and the gradient is that of finite differences."""
    energy, batch = linear()
    terms = rule(energy, batch)
    e = energy(**batch)
    assert torch.allclose(terms.positive, e, atol=1e-12)
    assert torch.allclose(terms.loss, terms.positive - terms.contrast, atol=1e-12)
    assert terms.exact and terms.is_objective
    total = terms.loss.sum()
    found = torch.autograd.grad(total, [energy.W, energy.b])
    for p, g in zip((energy.W, energy.b), found, strict=True):
        for i in range(p.numel()):
            values = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    p.view(-1)[i] += step
                    values.append(float(rule(energy, batch).loss.sum()))
                    p.view(-1)[i] -= step
            assert math.isclose(
                (values[0] - values[1]) / 2e-6, float(g.reshape(-1)[i]), abs_tol=1e-6
            )


@pytest.mark.filterwarnings("ignore:Naive lowers")
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_constant_changes_no_gradient(rule: object) -> None:
    energy, batch = linear()
    first = torch.autograd.grad(rule(energy, batch).loss.sum(), energy.W)[0]
    with torch.no_grad():
        energy.b += 11.0
    second = torch.autograd.grad(rule(energy, batch).loss.sum(), energy.W)[0]
    assert torch.allclose(first, second, atol=1e-10)


def test_presets_are_source_and_reduction() -> None:
    energy, batch = linear()
    pairs = [
        (Perceptron(), Contrast(All(), "min")),
        (SoftMin(), Contrast(All(), 1.0)),
        (SoftMin(2.5), Contrast(All(), 2.5)),
        (SoftMin(math.inf), Contrast(All(), "mean")),
        (Margin(1.3), Contrast(Wrong(), "min", m=1.3)),
    ]
    for named, spelled in pairs:
        assert torch.allclose(named(energy, batch).loss, spelled(energy, batch).loss, atol=1e-12), (
            named
        )


def test_nothing_given_is_one_table_for_all_rows() -> None:
    energy = TableEnergy(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    batch = {"x": Y}
    assert close(SoftMin()(energy, batch).loss, [0.407606, 1.407606, 2.407606])
    assert close(Perceptron()(energy, batch).loss, [0.0, 1.0, 2.0])
    assert close(Margin()(energy, batch).loss, [0.0, 2.0, 3.0])


def test_naive_warns_where_energies_can_fall_without_end() -> None:
    energy, batch = linear()
    with pytest.warns(UserWarning, match="LinearEnergy is not normalised over y"):
        Naive()(energy, batch)
    squared = SquaredEnergy(3, 1).double()
    Naive()(squared, {"x": batch["x"], "y": batch["x"][:, :1]})  # no warning: Z is free of θ


@pytest.mark.filterwarnings("ignore:Naive lowers")
def test_naive_falls_linearly() -> None:
    energy, batch = linear()
    trace = []
    for _ in range(5):
        loss = Naive()(energy, batch).loss.mean()
        trace.append(float(loss.detach()))
        energy.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in energy.parameters():
                p -= 0.1 * p.grad
    steps = torch.tensor(trace).diff()
    assert bool((steps < 0).all()) and float(steps.std()) < 1e-5


def test_constant_normaliser() -> None:
    """Squared error is Gaussian likelihood: SoftMin is e plus a constant, its gradient Naive's."""
    generator = torch.Generator().manual_seed(0)
    energy = SquaredEnergy(3, 2).double()
    batch = {
        "x": torch.randn(5, 3, generator=generator, dtype=torch.float64),
        "y": torch.randn(5, 2, generator=generator, dtype=torch.float64),
    }
    assert SoftMin().contrast_is_constant(energy)
    assert not SoftMin().contrast_is_constant(LinearEnergy(3, 2))
    soft, naive = SoftMin()(energy, batch), Naive()(energy, batch)
    assert torch.allclose(soft.loss - naive.loss, torch.full((5,), math.log(2 * math.pi)).double())
    a = torch.autograd.grad(soft.loss.sum(), energy.W)[0]
    b = torch.autograd.grad(naive.loss.sum(), energy.W)[0]
    assert torch.allclose(a, b, atol=1e-12)


def test_a_plan_is_made_once_per_energy_and_batch_names() -> None:
    energy, batch = linear()
    rule = SoftMin()
    rule(energy, batch)
    plan = rule.plan(energy, batch)
    assert rule.plan(energy, {**batch}) is plan
    other = NetClassEnergy(3, 4).double()
    assert rule.plan(other, batch) is not plan
    import copy

    assert copy.deepcopy(rule)._planned is None


def test_errors_teach() -> None:
    energy, batch = linear()
    with pytest.raises(Unsupported, match="the batch holds no 'y', which the rule contrasts"):
        SoftMin()(energy, {"x": batch["x"]})
    with pytest.raises(Unsupported, match="it has no variable 'w'; its variables are x, y"):
        SoftMin(over="w")(energy, batch)
    with pytest.raises(ValueError, match="latent must be 'marginalise', 'minimise' or"):
        SoftMin(latent="ignore")
    with pytest.raises(ValueError, match="temperature must be in"):
        SoftMin(-1.0)
    with pytest.raises(Unsupported, match=r"the cost is \(2, 2\) but 'y' has 4 values"):
        Margin(cost=torch.zeros(2, 2))(energy, batch)


class Line(Energy):
    """A 20-line user energy without abilities works with every table rule."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x[:, 0] * y


def test_user_energy_without_abilities() -> None:
    from groundstate.energy import Finite, Real

    energy = Line(x=Real(1), y=Finite(3))
    batch = {"x": torch.ones(3, 1), "y": Y}
    for rule, loss in ((SoftMin(), softmin_loss), (Perceptron(), perceptron_loss)):
        expected = loss(torch.tensor([[0.0, 1.0, 2.0]]).repeat(3, 1), Y, reduction="none")
        assert torch.allclose(rule(energy, batch).loss, expected)
