"""A population equals its members fitted one after the other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from groundstate.energy import LinearEnergy, NetClassEnergy, SquaredEnergy
from groundstate.errors import ShapeError, Unsupported
from groundstate.learn import L2, Margin, Naive, SoftMin, Stochastic, fit, sgd
from groundstate.learn.train.population.learn import fit_population

P = 4


def rows(n: int = 120) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, generator=g, dtype=torch.float64)
    return {"x": x, "y": (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 1).long()}


def nets() -> list[NetClassEnergy]:
    return [
        NetClassEnergy(5, 3, (7,), generator=torch.Generator().manual_seed(s)).double()
        for s in range(P)
    ]


def flat(energy: torch.nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in energy.parameters()])


def folds(n: int = 120) -> Tensor:
    weight = torch.ones(P, n, dtype=torch.float64)
    for p in range(P):
        weight[p, p::P] = 0.0
    weight[0, :40] *= 2.0  # members with different numbers of batches
    return weight


@pytest.mark.parametrize("batch_size", [16, None])
@pytest.mark.parametrize("optimizer", [None, sgd])
@pytest.mark.parametrize("folded", [False, True])
def test_equal_to_separate_fits(batch_size, optimizer, folded) -> None:  # type: ignore[no-untyped-def]
    data, together, alone = rows(), nets(), nets()
    lr, strength, seeds = [0.003, 0.01, 0.03, 0.1], [0.0, 0.1, 1.0, 10.0], [3, 1, 4, 1]
    weight = folds() if folded else None
    settings = {"batch_size": batch_size, "max_epochs": 4, "tol": None}
    if optimizer is not None:
        settings["optimizer"] = optimizer
    histories = fit_population(
        together, data, SoftMin(), Stochastic(**settings), lr=lr, strength=strength,
        sample_weight=weight, random_state=seeds,
    )  # fmt: skip
    for p in range(P):
        history = fit(
            alone[p], data, SoftMin(), Stochastic(lr=lr[p], **settings), random_state=seeds[p],
            penalty=L2(strength[p]), sample_weight=None if weight is None else weight[p],
        )  # fmt: skip
        torch.testing.assert_close(flat(together[p]), flat(alone[p]), rtol=1e-5, atol=1e-7)
        assert histories[p].n_iter == history.n_iter


def test_shared_seed_is_one_order_for_all() -> None:
    data, together, alone = rows(), nets(), nets()
    solver = Stochastic(batch_size=16, max_epochs=3, tol=None)
    fit_population(together, data, SoftMin(), solver, random_state=7)
    for a, b in zip(together, alone, strict=True):
        fit(b, data, SoftMin(), solver, random_state=7)
        torch.testing.assert_close(flat(a), flat(b), rtol=1e-5, atol=1e-8)


def test_plateau_stops_each_member_by_itself() -> None:
    data = rows()
    members = [LinearEnergy(5, 3).double() for _ in range(3)]
    alone = [LinearEnergy(5, 3).double() for _ in range(3)]
    lr = [1e-4, 0.05, 0.5]
    settings = {"batch_size": None, "max_epochs": 60, "tol": 1e-3, "patience": 2}
    histories = fit_population(
        members, data, SoftMin(), Stochastic(**settings), lr=lr, random_state=0
    )
    for p in range(3):
        history = fit(alone[p], data, SoftMin(), Stochastic(lr=lr[p], **settings), random_state=0)
        assert histories[p].n_iter == history.n_iter
        torch.testing.assert_close(flat(members[p]), flat(alone[p]), rtol=1e-5, atol=1e-7)
    assert len({h.n_iter for h in histories}) > 1


def test_early_stopping_gives_the_best_parameters_back() -> None:
    data, members = rows(), nets()
    train = folds()
    held = (train == 0).double()
    histories = fit_population(
        members, data, SoftMin(), Stochastic(lr=0.1, batch_size=16, max_epochs=80, tol=None),
        sample_weight=train, validation_weight=held, patience=4, random_state=0,
    )  # fmt: skip
    assert any(h.n_iter < 80 for h in histories)
    for energy, weight in zip(members, held, strict=True):
        loss = SoftMin()(energy, data).loss.detach() @ weight / weight.sum()
        assert loss.item() < 1.0


@pytest.mark.parametrize("rule", [Margin(), Naive()])
def test_other_rules(rule) -> None:  # type: ignore[no-untyped-def]
    if isinstance(rule, Naive):
        data = {"x": rows()["x"], "y": rows()["x"][:, :1] * 2}
        make = lambda s: SquaredEnergy(
            5, 1, (4,), generator=torch.Generator().manual_seed(s)
        ).double()
    else:
        data = rows()
        make = lambda s: NetClassEnergy(
            5, 3, (4,), generator=torch.Generator().manual_seed(s)
        ).double()
    together, alone = [make(s) for s in range(2)], [make(s) for s in range(2)]
    solver = Stochastic(batch_size=32, max_epochs=2, tol=None)
    fit_population(together, data, rule, solver, random_state=[0, 1])
    for p in range(2):
        fit(alone[p], data, rule, solver, random_state=p)
        torch.testing.assert_close(flat(together[p]), flat(alone[p]), rtol=1e-5, atol=1e-8)


def test_wrong_arguments_get_one_sentence() -> None:
    with pytest.raises(ShapeError, match="lr has 2 entries for 4 members"):
        fit_population(nets(), rows(), SoftMin(), lr=[0.1, 0.2])
    with pytest.raises(ShapeError, match=r"sample_weight must be \(120,\) or \(4, 120\)"):
        fit_population(nets(), rows(), SoftMin(), sample_weight=torch.ones(3, 120))
    with pytest.raises(Unsupported, match="average is not there for populations"):
        fit_population(nets(), rows(), SoftMin(), Stochastic(average=0.5))


def test_rules_that_keep_count_are_refused() -> None:
    from groundstate.learn import LossTerms

    rule = LossTerms({"fit": SoftMin(), "pull": lambda energy, batch: flat(energy).square().sum()})
    with pytest.raises(Unsupported, match="LossTerms has players or keeps count of its steps"):
        fit_population(nets(), rows(), rule)


def test_half_precision_is_that_of_single_fits() -> None:
    data = {**rows(), "x": rows()["x"].float()}
    ends = {}
    for precision in ("32", "bf16"):
        together, alone = [n.float() for n in nets()], [n.float() for n in nets()]
        solver = Stochastic(lr=0.01, batch_size=16, max_epochs=3, tol=None, precision=precision)
        fit_population(together, data, SoftMin(), solver, random_state=7)
        for a, b in zip(together, alone, strict=True):
            fit(b, data, SoftMin(), solver, random_state=7)
            torch.testing.assert_close(flat(a), flat(b), rtol=2e-2, atol=2e-2)
        ends[precision] = flat(together[0])
    assert not torch.equal(ends["32"], ends["bf16"])
    with pytest.raises(Unsupported, match="precision='fp16' is not there for populations"):
        fit_population(nets(), data, SoftMin(), Stochastic(precision="fp16"), random_state=7)
