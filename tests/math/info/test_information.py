"""Tables, counts and logits; mutual information, gain, inequalities, maximum entropy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import mutual_info_score
from torch import distributions as D

from groundstate import info
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.divergences import kl
from groundstate.math.info import inequalities

RNG = np.random.default_rng(0)


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_worked_numbers() -> None:
    assert info.surprise(0.01) == pytest.approx(4.6052, abs=1e-4)
    assert info.entropy(np.ones(7)) == pytest.approx(math.log(7))
    assert info.entropy([0.9, 0.1], base=2) == pytest.approx(0.468996, abs=1e-6)
    assert info.entropy([9, 5], base=2) == pytest.approx(0.940286, abs=1e-6)
    assert info.entropy([0.2, 0.6, 0.2]) == pytest.approx(0.950271, abs=1e-6)
    assert info.entropy([0, 1, 0]) == 0
    assert float(info.entropy(D.Normal(*double(0.0, 0.5)))) == pytest.approx(0.725791, abs=1e-6)
    assert float(info.entropy(D.Geometric(double(0.5)[0]))) == pytest.approx(2 * math.log(2))
    S = torch.tensor([[2.0, 0.5], [0.5, 1.0]]).double()
    gauss = D.MultivariateNormal(torch.zeros(2).double(), S)
    expected = 0.5 * torch.logdet(2 * math.pi * math.e * S)
    assert float(info.entropy(gauss)) == pytest.approx(float(expected))
    grown = info.entropy(D.MultivariateNormal(torch.zeros(2).double(), 3 * S))
    assert float(grown - expected) == pytest.approx(math.log(3))  # (d/2) ln c


def test_cross_entropies() -> None:
    q = [0.1, 0.2, 0.7]
    for base, value in ((None, 0.356675), (2, 0.514573), (10, 0.154902)):
        assert info.cross_entropy([0, 0, 1], q, base=base) == pytest.approx(value, abs=1e-6)
    assert info.cross_entropy([1, 0], [0.9, 0.1]) == pytest.approx(0.10536, abs=1e-5)
    assert info.cross_entropy([1, 0], [0.1, 0.9]) == pytest.approx(2.30259, abs=1e-5)
    found = info.cross_entropy(D.Normal(*double(1.0, 0.5)), D.Normal(*double(0.0, 1.0)))
    assert float(found) == pytest.approx(1.543939, abs=1e-6)
    p = RNG.random((4, 5))
    both = info.entropy(p) + kl(p, np.ones(5))
    np.testing.assert_allclose(info.cross_entropy(p, np.ones((4, 5))), both)


def test_logs_and_zero() -> None:
    p, q = RNG.random((6, 4)), RNG.random((6, 4))
    assert info.entropy(p, base=2) == pytest.approx(info.entropy(p) / math.log(2))
    np.testing.assert_allclose(info.entropy(p), stats.entropy(p, axis=1))
    np.testing.assert_allclose(kl(p, q), stats.entropy(p, q, axis=1))
    assert kl([0.5, 0.5], [1, 0]) == math.inf and kl([1, 0], [0.5, 0.5]) == math.log(2)
    assert float(torch.logsumexp(double(1000.0, 1000.0), 0)) == pytest.approx(1000.693147)
    big = np.array([1000.0, 1000.0])
    assert info.entropy(big, logits=True) == pytest.approx(math.log(2))
    np.testing.assert_allclose(info.entropy(np.log(p), logits=True), info.entropy(p))
    np.testing.assert_allclose(kl(np.log(p), np.log(q) + 5, logits=True), kl(p, q))
    assert info.entropy([0.0, -math.inf], logits=True) == 0
    for bad, message in (
        ([0.5, -0.5], "negative entries"),
        ([0.0, 0.0], "sums to zero"),
        ([np.nan, 1.0], "NaN or infinity"),
        ([], "one weight for each value"),
    ):
        with pytest.raises(ValueError, match=message):
            info.entropy(bad)
    with pytest.raises(ValueError, match="log-weights below"):
        info.entropy([-math.inf, -math.inf], logits=True)
    with pytest.raises(ValueError, match="base must be positive"):
        info.entropy([1, 1], base=1)
    with pytest.raises(Unsupported, match="normalized"):
        info.entropy(D.Normal(0.0, 1.0), normalized=True)
    with pytest.raises(ShapeError, match="same values"):
        kl([1, 2], [1, 2, 3])


def test_axes_batches_and_kinds_of_arrays() -> None:
    p = RNG.random((3, 4, 5))
    np.testing.assert_allclose(info.entropy(p, dim=1), info.entropy(np.moveaxis(p, 1, -1)))
    loop = np.array([[info.entropy(row) for row in table] for table in p])
    np.testing.assert_allclose(info.entropy(p), loop, atol=1e-14)
    tensor = info.entropy(torch.from_numpy(p))
    assert isinstance(tensor, torch.Tensor) and np.array_equal(tensor.numpy(), info.entropy(p))
    assert info.entropy(p.astype(np.float32)).dtype == np.float32
    assert info.entropy([1, 1, 1, 1], normalized=True) == pytest.approx(1)
    assert info.entropy(3 * p[0]) == pytest.approx(info.entropy(p[0]))  # counts


def test_gradients() -> None:
    g = torch.Generator().manual_seed(0)
    p = torch.rand(2, 4, generator=g, dtype=torch.float64, requires_grad=True)
    q = torch.rand(2, 4, generator=g, dtype=torch.float64, requires_grad=True)
    for function in (info.entropy, info.mutual_information, info.conditional_entropy):
        assert torch.autograd.gradcheck(function, (p,))
    assert torch.autograd.gradcheck(info.cross_entropy, (p, q))
    assert torch.autograd.gradcheck(kl, (p, q))
    assert torch.autograd.gradcheck(lambda a: kl(a, q, logits=True), (p,))
    edge = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(info.entropy(edge), edge)
    assert bool(torch.isfinite(slope).all())


def test_mutual_information() -> None:
    parabola = np.array([[1, 0], [0, 1], [1, 0]])
    assert info.mutual_information(parabola) == pytest.approx(0.636514, abs=1e-6)
    assert info.mi_gaussian(0.5) == pytest.approx(0.143841, abs=1e-6)
    a, b = RNG.random(4), RNG.random(3)
    assert info.mutual_information(np.outer(a, b)) == pytest.approx(0, abs=1e-15)
    joint = RNG.random((5, 4, 3))
    rows, columns = info.entropy(joint.sum(2)), info.entropy(joint.sum(1))
    whole = info.entropy(joint.reshape(5, -1))
    np.testing.assert_allclose(info.mutual_information(joint), rows + columns - whole)
    np.testing.assert_allclose(info.conditional_entropy(joint), whole - rows)
    np.testing.assert_allclose(info.conditional_entropy(joint, given=-1), whole - columns)
    x, y = RNG.integers(0, 4, 200), RNG.integers(0, 3, 200)
    table = np.histogram2d(x, y, (4, 3))[0]
    assert info.mutual_information(table) == pytest.approx(mutual_info_score(x, y))
    A = RNG.normal(size=(4, 9))
    S = A @ A.T
    expected = 0.5 * math.log(
        np.linalg.det(S[:1, :1]) * np.linalg.det(S[1:, 1:]) / np.linalg.det(S)
    )
    assert info.mi_gaussian(S, split=1) == pytest.approx(expected)
    with pytest.raises(ValueError, match="not positive definite"):
        info.mi_gaussian(np.ones((2, 2)), split=1)
    with pytest.raises(ValueError, match="between -1 and 1"):
        info.mi_gaussian(1.5)
    with pytest.raises(ShapeError, match="joint must be a table"):
        info.mutual_information([1, 2])


def test_gain_of_play_tennis() -> None:
    days = "shhwn shhsn ohhwy rmhwy rcnwy rcnsn ocnsy smhwn scnwy rmnwy smnsy omhsy ohnwy rmhsn"
    table = np.array([list(day) for day in days.split()])
    play = table[:, 4]
    numbers = {0: (0.2467, 0.1564), 1: (0.0292, 0.0188), 2: (0.1518, 0.1518), 3: (0.0481, 0.0488)}
    for j, (gain, ratio) in numbers.items():
        assert info.information_gain(play, table[:, j]) == pytest.approx(gain, abs=1e-4)
        assert info.gain_ratio(play, table[:, j]) == pytest.approx(ratio, abs=1e-4)
        nats = mutual_info_score(table[:, j], play)
        assert info.information_gain(play, table[:, j], base=None) == pytest.approx(nats)
    twice = info.information_gain(np.tile(play, 2), np.tile(table[:, 0], 2))
    assert twice == pytest.approx(
        info.information_gain(play, table[:, 0], sample_weight=np.full(14, 2))
    )
    assert info.gain_ratio(play, np.zeros(14)) == 0
    with pytest.raises(ShapeError, match="two columns of one length"):
        info.information_gain([1, 2], [1])


def test_inequalities() -> None:
    x = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    normal = torch.exp(-0.5 * x**2)
    found = inequalities.jensen(torch.exp, x, normal)
    assert float(found.lhs) == pytest.approx(1) and float(found.rhs) == pytest.approx(1.648721)
    found = inequalities.jensen(torch.log, [1, 4], concave=True)
    assert (found.rhs, found.lhs) == pytest.approx((0.916291, 0.693147), abs=1e-6)
    found = inequalities.mixture_entropy([[1, 1, 1, 1], [1, 0, 0, 0]])
    assert (found.rhs, found.lhs) == pytest.approx((1.073543, 0.693147), abs=1e-6)
    p, q, T = RNG.random((200, 6)), RNG.random((200, 6)), RNG.random((6, 3))
    for check in (
        inequalities.gibbs(p, q),
        inequalities.pinsker(p, q),
        inequalities.log_sum(3 * p, q),
        inequalities.data_processing(p, q, T),
        inequalities.mixture_entropy(RNG.random((200, 3, 5)), RNG.random((200, 3))),
    ):
        assert np.all(check.holds()) and np.all(check.gap >= -1e-9)
    direct = (3 * p * np.log(3 * p / q)).sum(1)
    np.testing.assert_allclose(inequalities.log_sum(3 * p, q).rhs, direct)


def test_maxent_with_means() -> None:
    a = np.array([1.0, 2.0, 3.0])
    for beta in (0.5, 1.0, 4.0):
        found = info.maxent(a, beta=beta)
        np.testing.assert_allclose(found.p, np.exp(-beta * a) / np.exp(-beta * a).sum())
        value = -(a @ found.p) + info.entropy(found.p) / beta
        assert found.value == pytest.approx(value)
        t = torch.from_numpy(a)
        assert float(info.maxent(t, beta=beta).stationarity(t, beta).abs().max()) < 1e-12
    die = info.maxent(np.arange(1, 7), targets=4.5)
    assert abs(die.p @ np.arange(1, 7) - 4.5) < 1e-10
    assert np.ptp(np.diff(np.log(die.p))) < 1e-10  # an exponential family in the face
    assert die.value == pytest.approx(info.entropy(die.p))
    f = RNG.normal(size=(30, 3))
    goal = f[:10].mean(0)
    assert info.maxent(f, goal).p @ f == pytest.approx(goal, abs=1e-10)
    g = torch.Generator().manual_seed(0)
    F = torch.randn(8, 2, generator=g, dtype=torch.float64, requires_grad=True)
    at = F.detach().mean(0).requires_grad_()
    assert torch.autograd.gradcheck(lambda F, t: info.maxent(F, t).p, (F, at))
    assert torch.autograd.gradcheck(lambda F, t: info.maxent(F, t).value, (F, at))
    with pytest.raises(ValueError, match="strictly inside"):
        info.maxent([1, 2, 3], targets=3.5)
    with pytest.raises(ShapeError, match="one target for each"):
        info.maxent(f, [0.0])
