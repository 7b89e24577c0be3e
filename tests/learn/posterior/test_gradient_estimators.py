"""Gradient estimators: unbiasedness, exact variances, baselines, fall-backs."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.distributions import Categorical, Independent, Normal

from groundstate.errors import Unsupported
from groundstate.learn import compare_estimators, pathwise, score_function
from groundstate.learn.posterior.gradient_estimators import leaves, scores

F64 = torch.float64
P = torch.tensor([0.5, 0.3, 0.2], dtype=F64)
R = torch.tensor([1.0, 2.0, 4.0], dtype=F64)
EXACT = [-0.45, 0.03, 0.42]


def seed(k: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(k)


def finite(p: torch.Tensor = P) -> tuple[torch.Tensor, Categorical]:
    logits = p.log().requires_grad_()
    return logits, Categorical(logits=logits)


def row(rows, name):
    return next(r for r in rows if r.name == name)


def test_variances_of_the_finite_example():
    _, q = finite()
    rows = compare_estimators(lambda z: R[z], q, repeats=4000, generator=seed())
    assert row(rows, "exact").mean.tolist() == pytest.approx(EXACT, abs=1e-9)
    expected = {"score function": 3.8822, ", mean": 0.6408, ", optimal": 0.528387}
    for name, value in expected.items():
        found = row(rows, name if name == "score function" else "score function" + name)
        assert found.expected == pytest.approx(value, abs=1e-6)
        assert found.variance == pytest.approx(value, rel=0.1)
        assert bool(((found.mean - torch.tensor(EXACT)).abs() < 4 * found.stderr).all())


def test_a_large_constant_ruins_the_bare_estimator_only():
    _, q = finite()
    rows = compare_estimators(lambda z: R[z] + 100, q, repeats=2, generator=seed())
    assert row(rows, "score function").expected == pytest.approx(6492.2822, abs=1e-3)
    assert row(rows, "score function, mean").expected == pytest.approx(0.6408, abs=1e-9)


def test_the_mean_is_not_the_best_baseline():
    _, q = finite(torch.tensor([0.9, 0.1], dtype=F64))
    reward = torch.tensor([1.0, 0.0], dtype=F64)
    rows = compare_estimators(lambda z: reward[z], q, repeats=2, generator=seed())
    assert row(rows, "score function").expected == pytest.approx(0.0018, abs=1e-9)
    assert row(rows, "score function, mean").expected == pytest.approx(0.1152, abs=1e-9)
    assert row(rows, "score function, optimal").expected == pytest.approx(0.0, abs=1e-12)


def test_pathwise_beats_the_score_function():
    mu = torch.tensor(0.7, dtype=F64, requires_grad=True)
    q = Normal(mu, torch.tensor(1.0, dtype=F64))
    rows = compare_estimators(lambda z: -0.5 * (1 - z**2) ** 2, q, repeats=4000, generator=seed())
    assert row(rows, "exact").mean.tolist() == pytest.approx([-3.486], abs=1e-6)
    assert row(rows, "score function").expected == pytest.approx(456.4371, abs=1e-3)
    assert row(rows, "pathwise").expected == pytest.approx(107.4436, abs=1e-3)
    found = row(rows, "pathwise")
    assert abs(float(found.mean) + 3.486) < 4 * float(found.stderr)
    narrow = Normal(mu, torch.tensor(0.5, dtype=F64))
    rows = compare_estimators(lambda z: -0.5 * (1 - z**2) ** 2, narrow, repeats=2)
    assert row(rows, "exact").mean.tolist() == pytest.approx([-0.336], abs=1e-6)


def test_pathwise_moments():
    mu = torch.tensor(0.7, dtype=F64, requires_grad=True)
    s = torch.tensor(0.5, dtype=F64, requires_grad=True)
    pathwise(lambda z: z**2, Normal(mu, s), 200_000, generator=seed()).backward()
    assert float(mu.grad) == pytest.approx(1.4, abs=0.01)  # 2μ
    assert float(s.grad) == pytest.approx(1.0, abs=0.02)  # 2s


def test_score_of_a_normal_mean_is_noise_over_scale():
    mu = torch.tensor(0.3, dtype=F64, requires_grad=True)
    q = Normal(mu, torch.tensor(0.5, dtype=F64))
    z = torch.tensor([0.3 + 0.5 * 1.7], dtype=F64)
    assert scores(q, z).item() == pytest.approx(1.7 / 0.5)


def test_score_has_mean_zero():
    logits, q = finite()
    weighted = (P[:, None] * scores(q, torch.arange(3))).sum(0)
    assert weighted.tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    assert leaves(q.log_prob(torch.tensor(0))) == [logits]


@pytest.mark.parametrize("baseline", [None, 3.0, "mean", "leave_one_out", "optimal"])
def test_unbiased_with_every_baseline(baseline):
    logits, q = finite()
    value = score_function(lambda z: R[z], q, 40_000, baseline, generator=seed())
    value.backward()
    assert float(value.detach()) == pytest.approx(1.9, abs=0.03)
    assert logits.grad.tolist() == pytest.approx(EXACT, abs=0.04)


def test_other_parameters_of_f_learn_too():
    _, q = finite()
    reward = R.clone().requires_grad_()
    score_function(lambda z: reward[z], q, 20_000, generator=seed()).backward()
    assert reward.grad.tolist() == pytest.approx(P.tolist(), abs=0.02)


def test_network_baseline_fits_the_mean():
    logits = P.log().requires_grad_()
    net = nn.Linear(1, 1, dtype=F64)
    context = torch.ones(1, dtype=F64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    g = seed()
    for _ in range(200):
        optimizer.zero_grad()
        q = Categorical(logits=logits)
        score_function(lambda z: R[z], q, 64, net, context=context, generator=g).backward()
        optimizer.step()
    assert float(net(context).detach()) == pytest.approx(1.9, abs=0.1)


def test_batches_of_distributions():
    logits = torch.zeros(4, 3, dtype=F64, requires_grad=True)
    for baseline in (None, "mean", "optimal", "leave_one_out"):
        logits.grad = None
        q = Categorical(logits=logits)
        score_function(lambda z: R[z], q, 5000, baseline, generator=seed()).backward()
        exact = (R - R.mean()) / 3
        assert logits.grad.shape == (4, 3)
        torch.testing.assert_close(logits.grad, exact.expand(4, 3), rtol=0, atol=0.2)


def test_penalty_shrinks_the_score():
    mu = torch.tensor([0.0], dtype=F64, requires_grad=True)
    log_s = torch.tensor([0.0], dtype=F64, requires_grad=True)
    q = Independent(Normal(mu, log_s.exp()), 1)
    zero = lambda z: torch.zeros(z.shape[:-1], dtype=F64)
    bare = score_function(zero, q, 1000, generator=seed())
    fined = score_function(zero, q, 1000, penalty=0.5, generator=seed())
    assert float(bare.detach()) == float(fined.detach()) == 0.0
    fined.backward()
    assert float(log_s.grad) < 0  # a wider distribution has smaller scores


def test_distribution_without_path_falls_back_and_says_so():
    logits, q = finite()
    with pytest.warns(UserWarning, match="cannot be reparameterised"):
        pathwise(lambda z: R[z], q, 20_000, generator=seed()).backward()
    assert logits.grad.tolist() == pytest.approx(EXACT, abs=0.05)


def test_same_seed_same_estimate():
    _, q = finite()
    a, b = (score_function(lambda z: R[z], q, 10, "mean", generator=seed(3)) for _ in range(2))
    assert torch.equal(a, b)


def test_leave_one_out_is_reported_for_several_draws():
    _, q = finite()
    rows = compare_estimators(lambda z: R[z], q, n=4, repeats=2000, generator=seed())
    found = row(rows, "score function, leave_one_out")
    assert found.variance < row(rows, "score function").variance
    assert all(r.seconds > 0 for r in rows)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda q: score_function(lambda z: R[z], q, 0), ValueError, "at least one draw"),
        (lambda q: score_function(lambda z: R[z], q, 1, "leave_one_out"), ValueError, "n >= 2"),
        (lambda q: score_function(lambda z: R[z], q, 1, "best"), ValueError, "baseline must be"),
        (
            lambda q: score_function(lambda z: R[z], q, 1, nn.Linear(1, 1)),
            ValueError,
            "needs context",
        ),
        (
            lambda q: compare_estimators(lambda z: R[z], Categorical(P.expand(2, 3))),
            Unsupported,
            "takes one distribution",
        ),
        (
            lambda q: score_function(lambda z: R[z], Categorical(P), 2, "optimal"),
            Unsupported,
            "requires a gradient",
        ),
    ],
)
def test_errors_teach(call, error, message):
    with pytest.raises(error, match=message):
        call(finite()[1])


def test_gradients_of_many_values_are_those_of_each():
    mean = torch.tensor([0.3, -0.2], dtype=F64, requires_grad=True)
    scale = torch.tensor([0.5, 2.0], dtype=F64, requires_grad=True)
    q = Independent(Normal(mean, scale), 1)
    z = torch.randn(30, 2, generator=seed(), dtype=F64)
    many = scores(q, z)  # more values than parameters: columns of the Jacobian
    few = torch.cat([scores(q, z[i : i + 2]) for i in range(0, 30, 2)])  # fewer: its rows
    torch.testing.assert_close(many, few, rtol=0, atol=1e-12)
    scores(q, z, create_graph=True).square().sum().backward()
    assert mean.grad is not None and bool(torch.isfinite(mean.grad).all())


def test_the_report_does_not_depend_on_how_draws_are_cut_into_blocks(monkeypatch):
    from groundstate.learn.posterior import gradient_comparison as estimator_report

    _, q = finite()
    a = compare_estimators(lambda z: R[z], q, repeats=5000, generator=seed())
    monkeypatch.setattr(estimator_report, "BLOCK", 300)
    b = compare_estimators(lambda z: R[z], q, repeats=5000, generator=seed())
    for one, other in zip(a, b, strict=True):
        assert one.variance == pytest.approx(other.variance, rel=0.1)
        assert one.mean.shape == other.mean.shape
