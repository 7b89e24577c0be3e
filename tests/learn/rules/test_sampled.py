"""InBatch, Sampled and NCE: a few negatives that stand for all."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, Normal
from torch.nn import functional

from groundstate.compute.reduce import Reduce
from groundstate.energy import (
    BilinearEnergy,
    ChainEnergy,
    Energy,
    LinearEnergy,
    NetEnergy,
    Real,
    TableEnergy,
)
from groundstate.learn import NCE, NLL, InBatch, Sampled, SoftMin
from groundstate.learn.rules.negatives.table import Negatives, reduce

F64 = torch.float64


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Similar(Energy):
    """Minus the inner product of two embeddings."""

    def __init__(self) -> None:
        super().__init__(x=Real(4), y=Real(4))
        self.A = torch.nn.Parameter(torch.eye(4, dtype=F64))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return -((x @ self.A) * y).sum(-1)


def linear(k: int = 5) -> tuple[LinearEnergy, dict[str, Tensor]]:
    energy = LinearEnergy(3, k).double()
    with torch.no_grad():
        energy.W.copy_(torch.randn(k, 3, generator=generator()))
    x = torch.randn(8, 3, generator=generator(1), dtype=F64)
    return energy, {"x": x, "y": torch.randint(k, (8,), generator=generator(2))}


@pytest.mark.parametrize("T", [0.5, 1.0])
def test_in_batch_is_cross_entropy_on_similarities(T: float) -> None:
    energy = Similar()
    x = torch.randn(6, 4, generator=generator(), dtype=F64)
    y = torch.randn(6, 4, generator=generator(1), dtype=F64)
    found = InBatch(T)(energy, {"x": x, "y": y})
    expected = T * functional.cross_entropy(x @ y.T / T, torch.arange(6), reduction="none")
    assert torch.allclose(found.loss, expected, atol=1e-12)
    assert not found.exact and found.is_objective


def test_in_batch_counts_a_repeated_row_once() -> None:
    energy = Similar()
    x = torch.randn(4, 4, generator=generator(), dtype=F64)
    y = torch.randn(4, 4, generator=generator(1), dtype=F64)
    once = InBatch()(energy, {"x": x, "y": y}).loss
    twice = [0, 1, 1, 2, 3]
    again = InBatch()(energy, {"x": x[twice], "y": y[twice]}).loss
    assert torch.allclose(again, once[twice], atol=1e-12)


def test_in_batch_gathers_the_negatives_of_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(6, 4, generator=generator(), dtype=F64)
    y = torch.randn(6, 4, generator=generator(1), dtype=F64)
    classes, labelled = linear()
    whole = InBatch()(Similar(), {"x": x, "y": y}).loss
    whole_classes = InBatch()(classes, labelled).loss

    class Two(Reduce):
        """The second of two processes, which hold the first and the second half of the rows."""

        def gather(self, tensor: Tensor) -> Tensor:
            other = y[:3] if tensor.is_floating_point() else labelled["y"][:4]
            return torch.cat([other, tensor])

    monkeypatch.setattr("groundstate.learn.rules.negatives.sources.current", Two)
    half = InBatch()(Similar(), {"x": x[3:], "y": y[3:]}).loss
    assert torch.allclose(half, whole[3:], atol=1e-12)
    half = InBatch()(classes, {name: v[4:] for name, v in labelled.items()}).loss
    assert torch.allclose(half, whole_classes[4:], atol=1e-12)


def test_in_batch_with_all_classes_is_softmin() -> None:
    energy, batch = linear(3)
    batch["y"] = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    assert torch.allclose(InBatch()(energy, batch).loss, SoftMin()(energy, batch).loss)


@pytest.mark.parametrize("T", [0.7, 1.0])
def test_all_values_without_replacement_is_softmin(T: float) -> None:
    energy, batch = linear()
    found = Sampled(n=5, T=T)(energy, batch, generator=generator())
    assert torch.allclose(found.loss, SoftMin(T)(energy, batch).loss, atol=1e-12)
    bits = BilinearEnergy(3, 2, generator=generator()).double()
    x = {"x": torch.tensor([[0.0, 1.0, 1.0]], dtype=F64)}
    found = Sampled(n=8)(bits, x, generator=generator())
    assert torch.allclose(found.loss, NLL()(bits, x).loss, atol=1e-12)


def test_sampled_normaliser_is_unbiased() -> None:
    energy, batch = linear()
    proposal = Categorical(torch.tensor([0.4, 0.3, 0.1, 0.1, 0.1], dtype=F64))
    ratios = []
    exact = SoftMin()(energy, batch).loss
    for seed in range(400):
        found = Sampled(proposal, n=8)(energy, batch, generator=generator(seed)).loss
        ratios.append((found - exact).exp())  # Ẑ / Z
    each = torch.stack(ratios)
    stderr = each.std(0) / math.sqrt(len(each))
    assert bool(((each.mean(0) - 1).abs() < 4 * stderr).all())


def test_sampled_over_reals_approaches_the_likelihood() -> None:
    energy = NetEnergy(1, net=(4,), confine=1.0, generator=generator()).double()
    x = {"x": torch.randn(50, 1, generator=generator(), dtype=F64)}
    from groundstate.infer.exact.quadrature import Quadrature

    exact = NLL(approximate=Quadrature(64))(energy, x).loss
    found = Sampled(n=20000)(energy, x, generator=generator()).loss
    assert torch.allclose(found, exact, atol=0.05)
    conditional = Sampled(lambda known: Independent(Normal(torch.zeros(50, 1, dtype=F64), 1.5), 1))
    assert torch.isfinite(conditional(energy, x, generator=generator()).loss).all()


def test_sampled_respects_lengths() -> None:
    energy = ChainEnergy(2, 2, 3).double()
    batch = {
        "x": torch.randn(2, 3, 2, generator=generator(), dtype=F64),
        "y": torch.tensor([[0, 1, 0], [1, 0, 1]]),
        "lengths": torch.tensor([3, 1]),
    }
    found = Sampled(n=8)(energy, batch, generator=generator())
    assert torch.allclose(found.loss, NLL()(energy, batch).loss, atol=1e-12)


def test_nce_at_the_truth_knows_nothing_more_than_the_ratio() -> None:
    p = torch.tensor([0.6, 0.4], dtype=F64)
    rule = NCE(Categorical(p), ratio=1)
    found = rule(TableEnergy(-p.log()), {"x": torch.tensor([0, 1])}, generator=generator())
    assert torch.allclose(found.loss, torch.full((2,), 2 * math.log(2), dtype=F64), atol=1e-6)


def test_nce_gradient_approaches_that_of_the_likelihood() -> None:
    """As the ratio grows, and with c at log Z, NCE's gradient becomes that of NLL."""
    energy = TableEnergy(torch.tensor([0.5, -0.3, 0.1], dtype=F64))
    batch = {"x": torch.tensor([0, 1, 1, 2])}
    target = torch.autograd.grad(NLL()(energy, batch).loss.mean(), energy.theta)[0]
    gaps = []
    for ratio in (1, 10, 20000):
        log_z = float(torch.logsumexp(-energy.theta.detach(), 0))
        rule = NCE(ratio=ratio, log_z=log_z).double()
        rule.c.data.fill_(log_z)
        loss = rule(energy, batch, generator=generator()).loss.mean()
        g = torch.autograd.grad(loss, energy.theta)[0]
        gaps.append(float((g - target).abs().max()))
    assert gaps[2] < 0.02 < gaps[0]


def test_nce_learns_the_normaliser() -> None:
    energy = TableEnergy(torch.tensor([1.0, 2.0, 3.0], dtype=F64))
    p = torch.softmax(-energy.theta.detach(), 0)
    rows = torch.multinomial(p, 4000, replacement=True, generator=generator())
    rule = NCE(ratio=20).double()
    for step in range(200):
        loss = rule(energy, {"x": rows}, generator=generator(step)).loss.mean()
        rule.zero_grad()
        loss.backward()
        with torch.no_grad():
            rule.c -= 0.5 * rule.c.grad
    log_z = float(torch.logsumexp(-energy.theta.detach(), 0))
    assert math.isclose(float(rule.c.detach()), log_z, abs_tol=0.05)


def test_reduce() -> None:
    e = torch.tensor([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]], dtype=F64)
    assert torch.allclose(reduce(Negatives(e), "min"), e[0])
    assert torch.allclose(reduce(Negatives(e), "mean"), e[1])
    assert torch.allclose(reduce(Negatives(e), math.inf), e[1])
    for T in (0.5, 1.0, 3.0):
        assert torch.allclose(reduce(Negatives(e), T), -T * torch.logsumexp(-e / T, 0))
    keep = torch.tensor([[0.0, 0.0], [0.0, -math.inf], [-math.inf, 0.0]], dtype=F64)
    assert torch.allclose(reduce(Negatives(e, keep), "mean"), torch.tensor([1.5, 6.0], dtype=F64))
    first = reduce(Negatives(e, keep), 1.0)[0]
    assert torch.allclose(first, -torch.logsumexp(-e[:2, 0], 0))


def test_errors_teach() -> None:
    with pytest.raises(ValueError, match="at least one draw is needed, got n=0"):
        Sampled(n=0)
    with pytest.raises(ValueError, match="NCE needs at least one noise draw per row, got ratio=0"):
        NCE(ratio=0)
