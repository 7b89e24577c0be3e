"""Contrastive losses: worked numbers, the naive table, memory by blocks, several processes."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from groundstate.compute.reduce import run_local
from groundstate.energy import Energy, Real
from groundstate.errors import DataError, ShapeError
from groundstate.learn.losses import (
    contrastive_pair,
    info_nce,
    mine_triplets,
    nt_xent,
    supcon,
    triplet,
)
from groundstate.learn.rules import InBatch

NT_XENT, SUPCON = 0.8037289873599857, 0.17871736957022508
UNIT = torch.eye(2, dtype=torch.float64)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def naive(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    """As the formula is written, with the whole table."""
    z = functional.normalize(torch.cat((z1, z2)), dim=1)
    s = z @ z.T / temperature
    s = s.masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
    n = len(z1)
    other = torch.cat((torch.arange(n) + n, torch.arange(n)))
    return functional.cross_entropy(s, other)


@pytest.mark.parametrize(("temperature", "expected"), [(1.0, 0.551445), (0.5, 0.239545)])
def test_two_rows_with_equal_views(temperature: float, expected: float) -> None:
    assert nt_xent(UNIT, UNIT, temperature=temperature).item() == pytest.approx(expected, abs=1e-6)


def test_views_that_are_all_equal_know_nothing() -> None:
    same = torch.ones(2, 3, dtype=torch.float64)
    assert nt_xent(same, same).item() == pytest.approx(math.log(3))


def test_lengths_do_not_matter() -> None:
    a, b = normal(5, 3), normal(5, 3, seed=1)
    scale = torch.arange(1.0, 6.0, dtype=torch.float64)[:, None]
    torch.testing.assert_close(nt_xent(scale * a, b / scale), nt_xent(a, b))


@pytest.mark.parametrize("block", [None, 1, 3, 100])
@pytest.mark.parametrize("temperature", [1e-3, 0.1, 0.5, 2.0])
def test_is_the_naive_table_with_gradient_in_any_blocks(
    block: int | None, temperature: float
) -> None:
    a, b = normal(7, 4).requires_grad_(), normal(7, 4, seed=1).requires_grad_()
    ours = nt_xent(a, b, temperature=temperature, block=block)
    theirs = naive(a, b, temperature)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, (a, b)), torch.autograd.grad(theirs, (a, b))
    )


def test_gradcheck() -> None:
    a, b = normal(4, 3).requires_grad_(), normal(4, 3, seed=1).requires_grad_()
    y = torch.tensor([0, 0, 1, 0])
    weight = torch.tensor([1.0, 0.5, 3.0, 2.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, weight, block=3), (a, b))
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, weight), (a, b))
    assert torch.autograd.gradcheck(lambda a, b: info_nce(a, b, symmetric=True), (a, b))
    assert torch.autograd.gradcheck(lambda a, b: info_nce(a, b, negatives=b + 1), (a, b))
    assert torch.autograd.gradcheck(lambda a: supcon(a, y, block=3), (a,))
    assert torch.autograd.gradcheck(lambda a, b: contrastive_pair(a, b, y.clamp(max=1)), (a, b))


def test_rows_in_another_order_have_their_own_losses() -> None:
    a, b = normal(6, 3), normal(6, 3, seed=1)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    whole = nt_xent(a, b, reduction="none")
    torch.testing.assert_close(nt_xent(a[order], b[order], reduction="none"), whole[order])
    weight = torch.tensor([1.0, 0, 2, 0, 1, 0], dtype=torch.float64)
    expected = (weight * whole).sum() / 4
    torch.testing.assert_close(nt_xent(a, b, weight), expected)


def test_half_precision_is_summed_in_single() -> None:
    a, b = normal(4, 3).to(torch.bfloat16), normal(4, 3, seed=1).to(torch.bfloat16)
    torch.testing.assert_close(nt_xent(a, b), nt_xent(a.float(), b.float()))
    with torch.autocast("cpu", torch.bfloat16):
        found = nt_xent(a.float().requires_grad_(), b.float())
        found.backward()
    torch.testing.assert_close(found, nt_xent(a.float(), b.float()))


class Similar(Energy):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return -functional.cosine_similarity(x, y, dim=-1) / 0.2


def test_info_nce_is_in_batch_with_minus_the_similarity_as_energy() -> None:
    x, y = normal(6, 3), normal(6, 3, seed=1)
    energy = Similar(x=Real(3), y=Real(3))
    torch.testing.assert_close(
        info_nce(x, y, temperature=0.2, reduction="none"), InBatch()(energy, {"x": x, "y": y}).loss
    )


def test_info_nce_with_a_bank_of_negatives_is_cross_entropy() -> None:
    q, k, bank = normal(5, 3), normal(5, 3, seed=1), normal(9, 3, seed=2)
    keys = functional.normalize(torch.cat((k, bank)), dim=1)
    logits = functional.normalize(q, dim=1) @ keys.T / 0.1
    torch.testing.assert_close(
        info_nce(q, k, negatives=bank), functional.cross_entropy(logits, torch.arange(5))
    )


def test_supcon_of_pairs_is_nt_xent() -> None:
    a, b = normal(6, 3), normal(6, 3, seed=1)
    y = torch.arange(6).repeat(2)
    torch.testing.assert_close(
        supcon(torch.cat((a, b)), y, temperature=0.5), nt_xent(a, b, temperature=0.5)
    )


def test_supcon_is_the_mean_over_positives() -> None:
    z, y = normal(7, 3), torch.tensor([0, 1, 0, 2, 1, 0, 1])
    unit = functional.normalize(z, dim=1)
    s = (unit @ unit.T / 0.1).fill_diagonal_(-torch.inf)
    log_p = torch.log_softmax(s, 1)
    rows = []
    for i in range(7):
        positives = [j for j in range(7) if j != i and y[j] == y[i]]
        if positives:
            rows.append(-log_p[i, positives].mean())
    torch.testing.assert_close(supcon(z, y), torch.stack(rows).mean())  # row 3 is alone


def test_numbers_of_another_library() -> None:
    # pytorch_metric_learning 2.9: NTXentLoss(temperature=0.5), SupConLoss(temperature=0.1) on
    # z = [[1, 2], [2, 1], [-1, 1], [0, 3], [1, 0], [-2, 2]], labels [0, 1, 2, 0, 1, 2]
    z = torch.tensor([[1.0, 2], [2, 1], [-1, 1], [0, 3], [1, 0], [-2, 2]], dtype=torch.float64)
    assert nt_xent(z[:3], z[3:]).item() == pytest.approx(NT_XENT, abs=1e-5)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    assert supcon(z, y).item() == pytest.approx(SUPCON, abs=1e-5)


def test_squared_triplets() -> None:
    a, p, n = (torch.tensor([v]) for v in ([0.0, 0.0], [1.0, 0.0], [1.0, 1.0]))
    assert triplet(a, p, n, margin=0.5, squared=True).item() == 0
    assert triplet(a, p, n, margin=2.0, squared=True).item() == 1


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_triplet_is_that_of_torch(p: float) -> None:
    a, b, c = (normal(8, 3, seed=s) for s in range(3))
    theirs = torch.nn.TripletMarginLoss(margin=1.0, p=p)(a, b, c)
    torch.testing.assert_close(triplet(a, b, c, p=p), theirs, rtol=1e-5, atol=1e-5)


def test_pairs() -> None:
    a, b = normal(6, 3), normal(6, 3, seed=1)
    y = torch.tensor([1, 0, 1, 0, 0, 1])
    d = (a - b).norm(dim=1)
    expected = y * d**2 + (1 - y) * functional.relu(1.5 - d) ** 2
    torch.testing.assert_close(contrastive_pair(a, b, y, margin=1.5), expected.mean())


def test_semihard_triplets_are_those_of_the_definition() -> None:
    z, y = normal(30, 2), torch.arange(30) % 4
    d = torch.cdist(z, z)
    found = {(int(a), int(p)): int(n) for a, p, n in mine_triplets(z, y, "semihard", margin=0.4)}
    for a in range(30):
        for p in range(30):
            if a == p or y[a] != y[p]:
                continue
            fits = [
                (float(d[a, n]), n)
                for n in range(30)
                if y[n] != y[a] and d[a, p] < d[a, n] < d[a, p] + 0.4
            ]
            assert found.get((a, p)) == (min(fits)[1] if fits else None)


def test_every_triplet_and_the_hardest() -> None:
    z, y = normal(12, 2), torch.arange(12) % 3
    every = mine_triplets(z, y, "all")
    assert len(every) == 12 * 3 * 8
    d = torch.cdist(z, z)
    for a, p, n in mine_triplets(z, y, "hard").tolist():
        mine = every[every[:, 0] == a]
        assert d[a, p] == d[a, mine[:, 1]].max()
        assert d[a, n] == d[a, mine[:, 2]].min()


def test_what_cannot_be_contrasted_is_said() -> None:
    with pytest.raises(ShapeError, match=r"\(2, 2\) and \(3, 2\)"):
        nt_xent(torch.ones(2, 2), torch.ones(3, 2))
    with pytest.raises(DataError, match="at least two"):
        nt_xent(torch.ones(1, 2), torch.ones(1, 2))
    with pytest.raises(ValueError, match="temperature must be positive"):
        nt_xent(torch.ones(2, 2), torch.ones(2, 2), temperature=0.0)
    with pytest.raises(DataError, match="alone"):
        supcon(torch.ones(2, 2), torch.tensor([0, 1]))
    with pytest.raises(DataError, match="1 for pairs"):
        contrastive_pair(torch.ones(2, 2), torch.ones(2, 2), torch.tensor([0, 2]))
    with pytest.raises(ShapeError, match="negatives"):
        info_nce(torch.ones(2, 2), torch.ones(2, 2), negatives=torch.ones(4, 3))


def shard(rank: int) -> dict[str, Tensor]:
    cuts = [slice(0, 3), slice(3, 7)]
    a = normal(7, 4)[cuts[rank]].requires_grad_()
    b = normal(7, 4, seed=1)[cuts[rank]].requires_grad_()
    loss = nt_xent(a, b, reduction="none", gather=True)
    pair = info_nce(a, b, symmetric=True, reduction="none", gather=True)
    (loss.sum() + pair.sum()).backward()
    return {"loss": loss.detach(), "pair": pair.detach(), "a": a.grad, "b": b.grad}


@pytest.mark.slow
def test_two_processes_with_rows_of_their_own_are_one_batch() -> None:
    a, b = normal(7, 4).requires_grad_(), normal(7, 4, seed=1).requires_grad_()
    loss = nt_xent(a, b, reduction="none")
    pair = info_nce(a, b, symmetric=True, reduction="none")
    (loss.sum() + pair.sum()).backward()
    parts = run_local(shard, 2)
    for name, whole in {"loss": loss, "pair": pair, "a": a.grad, "b": b.grad}.items():
        torch.testing.assert_close(torch.cat([part[name] for part in parts]), whole.detach())
