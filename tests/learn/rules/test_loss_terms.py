"""Named loss terms: sums, weights found in eight ways, own rows, and players inside terms."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import Energy, LinearEnergy, Real
from groundstate.errors import Unsupported
from groundstate.learn import (
    L2,
    NLL,
    Balance,
    Callback,
    Checkpoint,
    LossTerms,
    Run,
    SoftMin,
    Stochastic,
    balance,
    fit,
    sgd,
)
from groundstate.learn.rules.balancing import BALANCES, Annealing, EqualNorms, GradNorm, Relative

F64 = torch.float64


class Two(Energy):
    """Two parameters, one for each term."""

    normalised = frozenset({"x"})

    def __init__(self) -> None:
        super().__init__(x=Real(1))
        self.a = nn.Parameter(torch.zeros((), dtype=F64))
        self.b = nn.Parameter(torch.zeros((), dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x[:, 0] - self.a).square() + 0.5 * math.log(2 * math.pi)


def small(energy: Two, batch: object, generator: object = None) -> Tensor:
    """A slow, small term."""
    return 0.01 * (energy.b - 1).square()


def large(energy: Two, batch: object, generator: object = None) -> Tensor:
    return 100 * (energy.a - 1).square()


ROWS = {"x": torch.ones(8, 1, dtype=F64)}


def data(n: int = 60) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=g, dtype=F64)
    return {"x": x, "y": (x @ torch.ones(3, dtype=F64) > 0).long()}


def trained(rule: object, **kwargs: object) -> Tensor:
    energy = LinearEnergy(3, 2).double()
    solver = Stochastic(lr=0.05, batch_size=16, max_epochs=5, tol=None)
    fit(energy, data(), rule, solver, random_state=0, **kwargs)  # type: ignore[arg-type]
    return energy.W.detach()


def test_one_term_of_weight_one_is_the_rule_itself() -> None:
    assert torch.equal(trained(LossTerms({"only": SoftMin()})), trained(SoftMin()))


def test_fixed_weights_are_a_weighted_sum() -> None:
    """λ times ‖W‖² as a term is the L2 penalty of strength 2λN."""

    def square(energy: LinearEnergy, batch: object, generator: object = None) -> Tensor:
        return energy.W.square().sum()

    terms = LossTerms({"data": SoftMin(), "decay": square}, weights={"decay": 0.1})
    torch.testing.assert_close(trained(terms), trained(SoftMin(), penalty=L2(0.2 * 60)))
    assert terms.weights == pytest.approx({"data": 1.0, "decay": 0.1})


def test_rows_and_weights_agree_with_the_mean() -> None:
    energy = LinearEnergy(3, 2).double()

    def margin(energy: LinearEnergy, batch: dict[str, Tensor], generator: object = None) -> Tensor:
        return energy.table("y", x=batch["x"]).square().sum(1)  # (B,)

    rule = LossTerms({"data": SoftMin(), "margin": margin}, weights={"margin": 0.3})
    weight = torch.linspace(0, 2, 60, dtype=F64)
    rows = rule(energy, data()).loss
    mean = rule.mean(energy, data(), weight, float(weight.sum()))[0]
    torch.testing.assert_close(mean, rows @ weight / weight.sum())


def test_history_has_terms_and_weights() -> None:
    rule = LossTerms({"data": NLL(), "small": small}, weights="dwa")
    solver = Stochastic(sgd, lr=0.1, batch_size=4, max_epochs=6, tol=None)
    history = fit(Two(), ROWS, rule, solver)
    assert len(history.extra["loss.small"]) == 6
    assert history.extra["loss.small"][0] == pytest.approx(0.01, rel=0.01)
    total = [
        a + b for a, b in zip(*(history.extra[f"weight.{n}"] for n in rule.names), strict=True)
    ]
    assert total == pytest.approx([2.0] * 6)
    assert history.extra["weight.small"][-1] > 1 > history.extra["weight.data"][-1]


@pytest.mark.parametrize("name", sorted(BALANCES))
def test_every_balance_learns_and_resumes_its_state(name: str) -> None:
    rule = LossTerms({"large": large, "small": small}, weights=name)
    energy = Two()
    solver = Stochastic(lr=0.05, batch_size=4, max_epochs=150, tol=None)
    fit(energy, ROWS, rule, solver, random_state=0)
    assert float(energy.a.detach()) == pytest.approx(1.0, abs=0.05)
    assert float(energy.b.detach()) == pytest.approx(1.0, abs=0.05)
    weights = rule.weights
    assert all(w > 0 for w in weights.values())
    again = LossTerms({"large": large, "small": small}, weights=name)
    again.load_state_dict(rule.state_dict())
    assert again.weights == weights


@pytest.mark.parametrize("name", sorted(BALANCES))
def test_weights_stay_finite_where_a_term_says_nothing(name: str) -> None:
    """A term that is zero with zero gradient, and one that is negative."""

    def nothing(energy: Two, batch: object, generator: object = None) -> Tensor:
        return 0 * energy.b

    def negative(energy: Two, batch: object, generator: object = None) -> Tensor:
        return (energy.b - 1).square() - 5

    terms = {"large": large, "nothing": nothing, "negative": negative}
    rule, energy = LossTerms(terms, weights=name), Two()
    solver = Stochastic(lr=0.01, batch_size=4, max_epochs=30, tol=None)
    fit(energy, ROWS, rule, solver, random_state=0)
    assert all(math.isfinite(w) and w >= 0 for w in rule.weights.values())
    assert math.isfinite(float(energy.a.detach()))


def test_terms_resume_to_the_same_bits(tmp_path: Path) -> None:
    class Stop(Callback):
        def on_step(self, run: Run) -> bool:
            return run.total_steps == 7

    def run(*callbacks: Callback) -> tuple[list[float], dict[str, list[float]]]:
        rule, energy = LossTerms({"large": large, "small": small}, weights="relative"), Two()
        solver = Stochastic(lr=0.05, batch_size=2, max_epochs=5, tol=None)
        history = fit(energy, ROWS, rule, solver, callbacks=list(callbacks), random_state=0)
        return [float(energy.a.detach()), float(energy.b.detach())], history.extra

    whole = run()
    run(Checkpoint(tmp_path, every_steps=3), Stop())
    assert run(Checkpoint(tmp_path, every_steps=3)) == whole


def test_uncertainty_learns_the_scales() -> None:
    """At the optimum σ_k² = L_k, whatever the sizes of the losses."""

    def held(value: float) -> Callable[..., Tensor]:
        return lambda energy, batch, generator=None: value + 0 * energy.a

    rule = LossTerms({"one": held(4.0), "two": held(0.25)}, weights="uncertainty")
    solver = Stochastic(lr=0.05, batch_size=None, max_epochs=400, tol=None)
    fit(Two(), ROWS, rule, solver)
    s = rule.balance.s.detach()  # type: ignore[union-attr]
    assert s.exp().tolist() == pytest.approx([4.0, 0.25], rel=1e-2)


def gradients_of(rule: LossTerms, energy: Two) -> list[float]:
    values = [rule._mean(n, energy, ROWS, None, 1.0, None) for n in rule.names]
    return [
        float(torch.stack([g.norm() for g in own]).norm())
        for own in rule._gradients(values, energy)
    ]


def test_equal_norms_balance_the_gradients() -> None:
    rule, energy = LossTerms({"large": large, "small": small}, EqualNorms(0.0, every=1)), Two()
    rule.mean(energy, ROWS)
    norms = gradients_of(rule, energy)
    weighted = [w * n for w, n in zip(rule.weights.values(), norms, strict=True)]
    assert weighted == pytest.approx([sum(norms) / 2] * 2, rel=1e-5)


def test_annealing_matches_the_reference() -> None:
    chosen = Annealing(reference="small", decay=0.0, every=1)
    rule, energy = LossTerms({"large": large, "small": small}, chosen), Two()
    rule.mean(energy, ROWS)
    # max|∇small| = .02; mean|∇large| = 200/2, over both parameters
    assert rule.weights == pytest.approx({"large": 0.02 / 100, "small": 1.0})
    with pytest.raises(ValueError, match="reference='none' is no term; the terms are a, b"):
        LossTerms({"a": large, "b": small}, Annealing("none"))


def test_gradnorm_moves_weights_to_the_slow_and_small_term() -> None:
    rule, energy = LossTerms({"large": large, "small": small}, GradNorm(lr=0.1)), Two()
    for _ in range(5):
        rule.mean(energy, ROWS)
    weights = rule.weights
    assert weights["small"] > 1 > weights["large"]
    assert sum(weights.values()) == pytest.approx(2.0)


def test_relative_weights_by_the_fall() -> None:
    """With α = 0 the weights are K softmax(L_k(t)/L_k(t−1))."""
    rule, energy = LossTerms({"large": large, "small": small}, Relative(alpha=0.0)), Two()
    rule.mean(energy, ROWS)
    assert rule.weights == pytest.approx({"large": 1.0, "small": 1.0})
    with torch.no_grad():
        energy.a.fill_(0.5)  # a quarter of the first loss is left
    rule.mean(energy, ROWS)
    e, f = math.exp(0.25), math.exp(1.0)
    assert rule.weights == pytest.approx({"large": 2 * e / (e + f), "small": 2 * f / (e + f)})


def test_nothing_changes_in_evaluation() -> None:
    rule, energy = LossTerms({"large": large, "small": small}, "gradnorm").eval(), Two()
    rule.mean(energy, ROWS)
    assert int(rule.state_dict()["steps"]) == 0 and rule.weights == {"large": 1.0, "small": 1.0}


def test_a_term_may_have_rows_of_its_own() -> None:
    """An equation: a(x) has slope 2 at its own points, and the data fix the level."""

    class Line(Energy):
        normalised = frozenset({"y"})

        def __init__(self) -> None:
            super().__init__(x=Real(1), y=Real(1))
            self.net = nn.Linear(1, 1).double()

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return 0.5 * (self.net(x) - y).square().sum(-1) + 0.5 * math.log(2 * math.pi)

    def equation(energy: Line, batch: dict[str, Tensor], generator: object = None) -> Tensor:
        x = batch["x"].requires_grad_(True)
        slope = torch.autograd.grad(energy.net(x).sum(), x, create_graph=True)[0]
        return (slope - 2).square().sum(-1)  # (M,)

    def points(generator: torch.Generator | None) -> dict[str, Tensor]:
        return {"x": torch.rand(16, 1, generator=generator, dtype=F64)}

    level = {"x": torch.zeros(4, 1, dtype=F64), "y": torch.full((4, 1), 3.0, dtype=F64)}
    fixed = {"x": torch.linspace(0, 1, 50, dtype=F64)[:, None]}
    for source, rows in ((points, None), (fixed, 8), (fixed, None)):
        energy = Line()
        rule = LossTerms({"data": NLL(), "eq": equation}, sources={"eq": source}, rows=rows)
        solver = Stochastic(lr=0.1, batch_size=None, max_epochs=400, tol=None)
        fit(energy, level, rule, solver, random_state=0)
        found = float(energy.net.weight.detach()), float(energy.net.bias.detach())
        assert found == pytest.approx((2.0, 3.0), abs=0.02)


def test_wrong_settings_are_told() -> None:
    with pytest.raises(Unsupported, match="got 'gradnrm'; did you mean 'gradnorm'"):
        balance("gradnrm")
    with pytest.raises(ValueError, match="weights names 'c', but the terms are a"):
        LossTerms({"a": small}, weights={"c": 1.0})
    with pytest.raises(ValueError, match="sources names 'c', but the terms are a"):
        LossTerms({"a": small}, sources={"c": ROWS})
    with pytest.raises(ValueError, match="at least one term"):
        LossTerms({})
    with pytest.raises(Unsupported, match="the term 'data': "):
        fit(LinearEnergy(3, 2), {"x": data()["x"].float()}, LossTerms({"data": SoftMin()}))
    assert isinstance(balance("relative"), Balance)
