"""Conditional random fields: enumeration, independence, weights, rows of different length."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from groundstate.compute.rows import Ragged
from groundstate.energy import CRFEnergy, Finite, RaggedOf, Real, Sequence, gradcheck
from groundstate.errors import ShapeError
from groundstate.infer import marginalise, minimise
from groundstate.learn import SoftMin

K, T, D = 3, 5, 2


class Steps(nn.Module):
    """A linear map of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(D, K)

    def forward(self, x: Ragged) -> Ragged:
        return x.like(self.map(x.values))


def crf(ragged: bool = True, scale: float = 1.0) -> CRFEnergy:
    torch.manual_seed(0)
    net = Steps() if ragged else nn.Linear(D, K)
    x = RaggedOf(Real(D)) if ragged else (T, D)
    energy = CRFEnergy(net, x, RaggedOf(Finite(K)) if ragged else Sequence(Finite(K), T)).double()
    with torch.no_grad():
        for p in (energy.A, energy.first, energy.last):
            p.copy_(scale * torch.randn(p.shape, dtype=torch.float64))
    return energy


def rows(*lengths: int) -> Ragged:
    g = torch.Generator().manual_seed(1)
    made = [torch.randn(n, D, generator=g, dtype=torch.float64) for n in lengths]
    return Ragged.of(made, torch.float64)


def every(n: int) -> Tensor:
    return torch.tensor(list(product(range(K), repeat=n)))


def test_log_z_and_argmin_are_those_of_enumeration() -> None:
    energy, x = crf(), rows(T, 2, 1)
    best, log_z = energy.best(x), energy.log_partition(x)
    for i, n in enumerate((T, 2, 1)):
        strings = every(n)
        alone = x.take(torch.full((len(strings),), i))
        e = energy(x=alone, y=Ragged.of(list(strings)))
        assert torch.logsumexp(-e, 0).item() == pytest.approx(log_z[i].item(), abs=1e-10)
        found = best.take(torch.tensor([i])).values
        assert torch.equal(found, strings[e.argmin()])


def test_forms_agree_and_infer_finds_them() -> None:
    ragged, fixed = crf(), crf(ragged=False)
    x = rows(T, T)
    dense = x.padded()
    y = torch.randint(K, (2, T), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ragged(x=x, y=Ragged.of(list(y))), fixed(x=dense, y=y))
    log_z = ragged.log_partition(x)
    torch.testing.assert_close(-marginalise(fixed, "y", {"x": dense}).value, log_z)
    torch.testing.assert_close(-marginalise(ragged, "y", {"x": x}).value, log_z)
    assert torch.equal(minimise(fixed, "y", {"x": dense})["y"].flatten(), ragged.best(x).values)


def test_without_transitions_steps_are_independent() -> None:
    energy, x = crf(scale=0.0), rows(T, 3)
    scores = energy.net(x).values
    torch.testing.assert_close(energy.marginals(x).values, scores.softmax(-1))
    assert torch.equal(energy.best(x).values, scores.argmax(-1))
    y = scores.argmax(-1)
    p = scores.log_softmax(-1).gather(1, y[:, None])[:, 0]
    expected = torch.stack([p[:T].sum(), p[T:].sum()])
    torch.testing.assert_close(energy.log_prob(x, x.like(y)), expected)


def test_marginals_are_gradients_and_sum_to_one() -> None:
    energy, x = crf(), rows(4, 1, 3)
    mu = energy.marginals(x)
    torch.testing.assert_close(mu.values.sum(-1), torch.ones(8, dtype=torch.float64))
    energy.zero_grad()
    energy.log_partition(x).sum().backward()
    torch.testing.assert_close(energy.net.map.bias.grad, mu.values.sum(0).detach())


def test_the_loss_is_minus_log_p_and_differentiable() -> None:
    energy, x = crf(), rows(3, 2)
    y = Ragged.of([[0, 1, 2], [2, 2]])
    loss = SoftMin()(energy, {"x": x, "y": y}).loss
    torch.testing.assert_close(loss, -energy.log_prob(x, y))
    fixed = crf(ragged=False)
    gradcheck(fixed, {"x": rows(T).padded(), "y": torch.tensor([[0, 1, 2, 1, 0]])})


def test_rows_do_not_see_each_other_and_may_be_empty() -> None:
    energy, x = crf(), rows(4, 0, 2)
    y = Ragged.of([torch.tensor([0, 1, 1, 2]), torch.tensor([], dtype=torch.int64),
                   torch.tensor([2, 0])])  # fmt: skip
    together = energy.log_prob(x, y)
    assert together[1] == 0.0
    for i in (0, 2):
        pick = torch.tensor([i])
        torch.testing.assert_close(energy.log_prob(x.take(pick), y.take(pick)), together[pick])
    assert energy.best(x).lengths.tolist() == [4, 0, 2]


def test_errors_say_what_is_needed() -> None:
    energy, x = crf(), rows(3)
    with pytest.raises(ShapeError, match="x and y are of different lengths"):
        energy(x=x, y=Ragged.of([[0, 1]]))
    with pytest.raises(ValueError, match="labels are RaggedOf"):
        CRFEnergy(nn.Linear(2, 3), 2, Finite(3))
    narrow = CRFEnergy(nn.Linear(2, 2), (T, D), Sequence(Finite(K), T))
    with pytest.raises(ShapeError, match="3 of each step are needed"):
        narrow(x=torch.zeros(1, T, D), y=torch.zeros(1, T, dtype=torch.int64))
