"""Losses: the contract of all, and the numbers of each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
import torch
from torch import Tensor, nn

from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.learn import losses
from groundstate.learn.losses import LOSSES, LossHead, head_for, head_of
from groundstate.store import load, save

F64 = torch.float64
N, C = 6, 3


def t(values: Any) -> Tensor:
    return torch.tensor(values, dtype=F64)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def close(a: Tensor, b: Any, tol: float = 1e-6) -> bool:
    return torch.allclose(a, t(b) if not isinstance(b, Tensor) else b, atol=tol, rtol=0)


Loss = Callable[..., Tensor]
LABELS = torch.arange(N) % C
SIGNS = 2.0 * (torch.arange(N) % 2).double() - 1
# loss -> predictions and targets of N rows
CASES: dict[str, tuple[Loss, Tensor, Tensor]] = {
    "squared": (losses.squared, normal(N, 2), normal(N, 2, seed=1)),
    "absolute": (losses.absolute, normal(N, 2), normal(N, 2, seed=1)),
    "huber": (losses.huber, 2 * normal(N, 2), normal(N, 2, seed=1)),
    "quantile": (losses.quantile, normal(N, 2), normal(N, 2, seed=1)),
    "bce": (losses.bce, normal(N, 2), (normal(N, 2, seed=1) > 0).double()),
    "bce_from_probability": (
        losses.bce_from_probability, normal(N).sigmoid(), (normal(N, seed=1) > 0).double()),
    "cross_entropy": (losses.cross_entropy, normal(N, C), LABELS),
    "soft cross_entropy": (losses.cross_entropy, normal(N, C), normal(N, C, seed=1).softmax(1)),
    "nll": (losses.nll, normal(N, C).log_softmax(1), LABELS),
    "kl_divergence": (losses.kl_divergence, normal(N, C).log_softmax(1), normal(N, C, seed=1).softmax(1)),
    "brier": (losses.brier, normal(N, C), LABELS),
    "squared_onehot": (losses.squared_onehot, normal(N, C), LABELS),
    "hinge": (losses.hinge, normal(N), SIGNS),
    "squared_hinge": (losses.squared_hinge, normal(N), SIGNS),
    "multiclass_margin": (losses.multiclass_margin, normal(N, C), LABELS),
    "perceptron": (losses.perceptron, normal(N, C), LABELS),
    "dice": (losses.dice, normal(N, 2, 5).sigmoid(), (normal(N, 2, 5, seed=1) > 0).double()),
    "jaccard": (losses.jaccard, normal(N, 2, 5).sigmoid(), (normal(N, 2, 5, seed=1) > 0).double()),
    "focal": (losses.focal, normal(N, C), LABELS),
    "binary focal": (losses.focal, normal(N), (normal(N, seed=1) > 0).double()),
    "zero_one": (losses.zero_one, normal(N, C), LABELS),
}  # fmt: skip
SMOOTH = [n for n in CASES if n != "zero_one"]


@pytest.mark.parametrize("name", CASES)
def test_contract(name: str) -> None:
    loss, pred, y = CASES[name]
    rows = loss(pred, y, reduction="none")
    assert rows.shape == (N,)
    assert torch.allclose(loss(pred, y) * N, loss(pred, y, reduction="sum"))
    k = torch.tensor([1, 2, 0, 3, 1, 2])
    weighted = [loss(pred, y, k.double(), r) for r in ("mean", "sum")]
    copies = [loss(pred.repeat_interleave(k, 0), y.repeat_interleave(k, 0), reduction=r)
              for r in ("mean", "sum")]  # fmt: skip
    for a, b in zip(weighted, copies, strict=True):  # a weight of k is k copies
        assert torch.allclose(a, b, rtol=1e-12)
    assert torch.allclose(loss(pred, y, k.double(), "none"), rows * k)
    with pytest.raises(ShapeError, match=r"sample_weight has shape \(2,\), but there are 6 rows"):
        loss(pred, y, torch.ones(2))
    with pytest.raises(ValueError, match="reduction must be one of none, sum, mean, got 'avg'"):
        loss(pred, y, reduction="avg")


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_is_the_difference_quotient(name: str) -> None:
    loss, pred, y = CASES[name]
    leaf = pred.clone().requires_grad_()
    (grad,) = torch.autograd.grad(loss(leaf, y, reduction="sum"), leaf)
    d, h = normal(*pred.shape, seed=7), 1e-4
    f = {s: loss(pred + s * h * d, y, reduction="none") for s in (-2, -1, 1, 2)}
    fourth = (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * h)  # of every row
    ours = (grad * d).reshape(N, -1).sum(1)
    assert torch.allclose(ours, fourth, rtol=5e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["squared", "absolute", "huber", "quantile", "bce", "hinge"])
def test_bad_real_targets(name: str) -> None:
    loss, pred, y = CASES[name]
    broken = y.clone()
    broken.view(N, -1)[3, 0] = math.nan
    with pytest.raises(ValueError, match=rf"y\[3(, 0)?\] is nan, but the loss '{name}' needs"):
        loss(pred, broken)
    with pytest.raises(ShapeError, match="nothing is broadcast"):
        loss(pred, y[:1])


LABELLED = ["cross_entropy", "nll", "brier", "squared_onehot", "multiclass_margin", "perceptron"]


@pytest.mark.parametrize("name", [*LABELLED, "focal", "zero_one"])
def test_bad_labels(name: str) -> None:
    loss, pred, y = CASES[name]
    wrong = y.clone()
    wrong[4] = C
    with pytest.raises(
        DataError, match=rf"y\[4\] is 3, but the loss '{name}' needs a label 0 to 2"
    ):
        loss(pred, wrong)
    with pytest.raises(ShapeError, match=r"needs scores \(N, C, \.\.\.\)"):
        loss(pred, y[:2])


@pytest.mark.parametrize("name", ["cross_entropy", "nll", "brier", "focal", "multiclass_margin"])
def test_positions_are_examples(name: str) -> None:
    loss = CASES[name][0]
    pred = normal(2, C, 4, 5).log_softmax(1)
    y = torch.arange(40).reshape(2, 4, 5) % C
    flat = pred.permute(0, 2, 3, 1).reshape(-1, C)
    for reduction in ("mean", "sum"):
        assert torch.allclose(
            loss(pred, y, reduction=reduction), loss(flat, y.flatten(), reduction=reduction)
        )
    assert loss(pred, y, reduction="none").shape == (2, 4, 5)
    by_row = loss(pred, y, t([1.0, 3.0]))
    assert torch.allclose(by_row, (loss(pred[:1], y[:1]) + 3 * loss(pred[1:], y[1:])) / 4)


def test_regression_numbers() -> None:
    a, b = t([1, 2, 3]), t([1, 0, 7])
    assert losses.absolute(a, b, reduction="sum").item() == 6
    assert losses.squared(a, b, reduction="sum").item() == 20
    assert losses.squared(a, b).item() == pytest.approx(20 / 3)
    assert losses.squared(a, b, reduction="sum").sqrt().item() == pytest.approx(math.sqrt(20))
    p, q = t([[1, 2], [3, 5]]), t([[0, 2], [5, 1]])
    assert losses.L1Loss()(p, q).item() == 1.75
    assert losses.absolute(p, q, reduction="sum").item() == 7
    assert losses.MSELoss()(p, q).item() == 5.25
    assert losses.squared(p, q, reduction="sum").item() == 21
    assert losses.squared(p, q, reduction="none").tolist() == [1, 20]
    assert close(losses.huber(t([0.5, 3.0]), t([0, 0]), reduction="none"), [0.125, 2.5])
    assert torch.allclose(losses.huber(a, b, delta=0.7), losses.HuberLoss(delta=0.7)(a, b))


def test_constant_minimisers() -> None:
    y = normal(41)
    grid = torch.linspace(-3, 3, 6001, dtype=F64)

    def best(loss: Loss, values: Tensor, **options: float) -> float:
        pairs = grid.repeat_interleave(len(values)), values.repeat(len(grid))
        risk = loss(*pairs, reduction="none", **options).view(len(grid), -1).mean(1)
        return grid[int(risk.argmin())].item()

    assert best(losses.squared, y) == pytest.approx(y.mean().item(), abs=1e-3)
    assert best(losses.absolute, y) == pytest.approx(y.median().item(), abs=1e-3)
    assert best(losses.quantile, y, q=0.9) == pytest.approx(y.sort().values[36].item(), abs=1e-3)
    two = t([0.0] * 6 + [1.0] * 4)
    assert best(losses.absolute, two) == pytest.approx(0.0, abs=1e-9)
    assert best(losses.squared, two) == pytest.approx(0.4, abs=1e-9)
    for q in (0.0, 1.0):
        with pytest.raises(ValueError, match="q must lie in"):
            losses.quantile(y, y, q=q)


def test_bce_numbers() -> None:
    s, y = t([0, 2, -2, 1000]), t([1, 1, 1, 0])
    assert close(losses.bce(s, y, reduction="none"), [0.693147, 0.126928, 2.126928, 1000])
    leaf = t([1000.0, 0.3]).requires_grad_()
    (grad,) = torch.autograd.grad(losses.bce(leaf, t([0, 1]), reduction="sum"), leaf)
    assert close(grad, [1.0, torch.sigmoid(t(0.3)).item() - 1], 1e-12)
    q = t([0.0, 0.9, 0.1])
    assert close(
        losses.bce_from_probability(q, t([1, 1, 1]), reduction="none"), [100, 0.105361, 2.302585]
    )
    weight = t([1.0, 3.0, 0.5])
    assert losses.BCELoss(weight=weight)(q, t([1, 1, 1])).item() == pytest.approx(
        (
            losses.bce_from_probability(q, t([1, 1, 1]), weight, "sum") / 3
        ).item()  # torch divides by N
    )
    assert torch.allclose(losses.bce(s, y), losses.BCEWithLogitsLoss()(s, y))
    with pytest.raises(
        DataError, match=r"y\[1\] is 2, but the loss 'bce' needs values in \[0, 1\]"
    ):
        losses.bce(s, t([1, 2, 0, 1]))
    with pytest.raises(DataError, match="these look like logits"):
        losses.bce_from_probability(s, y)


def test_cross_entropy_numbers() -> None:
    s = t([[1, 2, 3]]).expand(3, 3)
    assert close(
        losses.cross_entropy(s, torch.arange(3), reduction="none"), [2.407606, 1.407606, 0.407606]
    )
    one = t([[2, 1, 0.1]])
    assert losses.cross_entropy(one, torch.tensor([0])).item() == pytest.approx(0.417030, abs=1e-6)
    smooth = losses.cross_entropy(one, torch.tensor([0]), label_smoothing=0.1)
    assert smooth.item() == pytest.approx(0.513697, abs=1e-6)
    two, y = t([[2, 1, 0.1], [0.5, 2.5, 0]]), torch.tensor([0, 2])
    w = t([1, 2, 3])
    assert close(
        losses.cross_entropy(two, y, reduction="none", class_weight=w), [0.417030, 8.090202]
    )
    assert losses.cross_entropy(two, y, class_weight=w).item() == pytest.approx(2.126808, abs=1e-6)
    assert torch.equal(
        losses.cross_entropy(two, y, class_weight=w),
        losses.cross_entropy(two, y, class_weight={1: 2.0, 2: 3.0}),
    )
    assert losses.cross_entropy(torch.zeros(1, 7), torch.tensor([4])).item() == pytest.approx(
        math.log(7)
    )
    leaf = normal(4, 3).requires_grad_()
    labels = torch.tensor([0, 2, 1, 1])
    (grad,) = torch.autograd.grad(losses.cross_entropy(leaf, labels, reduction="sum"), leaf)
    assert torch.allclose(grad, leaf.softmax(1) - nn.functional.one_hot(labels, 3), atol=1e-12)
    assert grad.sum(1).abs().max().item() < 1e-12
    p, q = t([[0, 0, 1]]), t([[0.1, 0.2, 0.7]])
    nats = losses.cross_entropy(q.log(), p)
    assert nats.item() == pytest.approx(0.356675, abs=1e-6)
    assert nats.item() / math.log(2) == pytest.approx(0.514573, abs=1e-6)
    moved = t([[0.25, 0.05, 0.7]])  # a one-hot target sees its own class alone
    assert losses.cross_entropy(moved.log(), p).item() == pytest.approx(nats.item())
    binary = losses.bce(leaf[:, 1] - leaf[:, 0], (labels[:] > 0).double())
    assert torch.allclose(losses.cross_entropy(leaf[:, :2], (labels > 0).long()), binary)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, 1, -1])
def test_cross_entropy_is_torchs(smoothing: float, weighted: bool, ignored: int | None) -> None:
    s, y = normal(2, C, 4), torch.arange(8).reshape(2, 4) % C
    if ignored == -1:
        y = torch.where(y == 2, -1, y)
    w = t([1.0, 0.5, 3.0]) if weighted else None
    for reduction in ("none", "sum", "mean"):
        ours = losses.cross_entropy(
            s,
            y,
            reduction=reduction,
            class_weight=w,
            label_smoothing=smoothing,
            ignore_index=ignored,
        )
        theirs = nn.CrossEntropyLoss(
            w, ignore_index=-100 if ignored is None else ignored, reduction=reduction,
            label_smoothing=smoothing,
        )(s, y)  # fmt: skip
        assert torch.allclose(ours, theirs, atol=1e-12)


def test_balanced_class_weight() -> None:
    y = torch.tensor([0, 0, 0, 1])
    s = normal(4, 2)
    rows = losses.cross_entropy(s, y, reduction="none")
    balanced = losses.cross_entropy(s, y, class_weight="balanced")
    assert torch.allclose(balanced, 0.5 * (rows[:3].mean() + rows[3]))
    for bad, message in (
        ("even", "got 'even'"),
        ({5: 1.0}, "names the label 5"),
        (t([1.0]), "needs 2 numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            losses.cross_entropy(s, y, class_weight=bad)  # type: ignore[arg-type]


def test_nll_takes_log_probabilities() -> None:
    s, y = normal(5, 4), torch.tensor([0, 1, 2, 3, 0])
    assert torch.allclose(losses.nll(s.log_softmax(1), y), losses.cross_entropy(s, y))
    assert torch.allclose(losses.nll(s.log_softmax(1), y), losses.NLLLoss()(s.log_softmax(1), y))


def test_kl_numbers() -> None:
    p, q = t([[0.36, 0.48, 0.16]]), t([[1 / 3] * 3])
    terms = losses.KLDivLoss(reduction="none")(q.log(), p)
    assert close(terms, [[0.027706, 0.175029, -0.117435]])
    assert losses.kl_divergence(q.log(), p).item() == pytest.approx(0.085300, abs=1e-6)
    assert losses.kl_divergence(q.log(), p.log(), log_target=True).item() == pytest.approx(
        0.0853, abs=1e-6
    )
    assert torch.allclose(
        losses.kl_divergence(q.log(), p), losses.KLDivLoss(reduction="batchmean")(q.log(), p)
    )
    with pytest.warns(UserWarning, match="batchmean"):
        element = losses.KLDivLoss()(q.log(), p)
    assert element.item() == pytest.approx(0.028433, abs=1e-6)
    s = normal(1, 3).requires_grad_()
    (kl,) = torch.autograd.grad(losses.kl_divergence(s.log_softmax(1), p), s)
    (ce,) = torch.autograd.grad(losses.cross_entropy(s, p), s)
    assert torch.allclose(kl, ce, atol=1e-14)


def test_margin_numbers() -> None:
    assert close(losses.hinge(t([2, 0.5, -1]), t([1, 1, 1]), reduction="none"), [0, 0.5, 2])
    e = t([[1, 2, 3]]).repeat(3, 1)
    y = torch.arange(3)
    assert losses.multiclass_margin(-e, y, reduction="none").tolist() == [0, 2, 3]
    assert losses.perceptron(-e, y, reduction="none").tolist() == [0, 1, 2]
    torchs = losses.MultiMarginLoss(reduction="none")(-e, y)
    assert torch.allclose(losses.multiclass_margin(-e, y, reduction="none", form="sum"), torchs)
    s, labels = normal(8, 4), torch.arange(8) % 4
    ours = losses.multiclass_margin(s, labels).item()
    assert ours == pytest.approx(
        sklearn.metrics.hinge_loss(labels.numpy(), s.numpy(), labels=range(4))
    )
    leaf = (-e).requires_grad_()
    (grad,) = torch.autograd.grad(losses.multiclass_margin(leaf, y, reduction="sum"), leaf)
    # in energies: ∇e_y − ∇e of the best wrong class where the loss is positive; none at the kink
    assert (-grad).tolist() == [[0, 0, 0], [-1, 1, 0], [-1, 0, 1]]
    kink = t([1.0]).requires_grad_()
    (flat,) = torch.autograd.grad(losses.hinge(kink, t([1.0])), kink)
    assert flat.item() == 0
    with pytest.raises(DataError, match=r"y\[0\] is 0, but hinge needs -1 or 1; turn labels"):
        losses.hinge(t([1.0]), t([0.0]))
    with pytest.raises(ValueError, match="form must be 'max' or 'sum'"):
        losses.multiclass_margin(s, labels, form="mean")  # type: ignore[arg-type]


def test_triplet_numbers() -> None:
    a, p, n = t([[0, 0]]), t([[1, 0]]), t([[1, 1]])  # squared distances 1 and 2
    assert losses.triplet(a, p, n, margin=0.5, squared=True).item() == 0
    assert losses.triplet(a, p, n, margin=2.0, squared=True).item() == 1
    assert losses.triplet(a, p, n, margin=2.0).item() == pytest.approx(1.585786, abs=1e-6)
    x, y, z = normal(5, 3), normal(5, 3, seed=1), normal(5, 3, seed=2)
    assert torch.allclose(losses.triplet(x, y, z), losses.TripletMarginLoss()(x, y, z), atol=1e-5)
    rows = losses.triplet(x, y, z, reduction="none")
    met = (x - z).norm(dim=1) - (x - y).norm(dim=1) >= 1
    assert torch.equal(rows == 0, met) and 0 < int(met.sum()) < 5
    same = x.clone().requires_grad_()  # a distance of zero has no slope, and no NaN
    (grad,) = torch.autograd.grad(losses.triplet(same, x, z), same)
    assert bool(torch.isfinite(grad).all())
    with pytest.raises(ValueError, match="margin must be positive"):
        losses.triplet(a, p, n, margin=0.0)
    with pytest.raises(ShapeError, match="three tables"):
        losses.triplet(a, p, z)


def test_triplet_miners() -> None:
    h, y = normal(12, 2), torch.arange(12) % 3
    d = torch.cdist(h, h)
    every = losses.mine_triplets(h, y, "all")
    assert len(every) == 12 * 3 * 8
    assert bool(((y[every[:, 0]] == y[every[:, 1]]) & (y[every[:, 0]] != y[every[:, 2]])).all())
    hard = losses.mine_triplets(h, y, "hard")
    for i, p, n in hard.tolist():
        assert d[i, p] == max(d[i, j] for j in range(12) if y[j] == y[i] and j != i)
        assert d[i, n] == min(d[i, j] for j in range(12) if y[j] != y[i])
    for i, p, n in losses.mine_triplets(h, y, "semihard").tolist():
        assert d[i, p] < d[i, n] < d[i, p] + 1
    loss = losses.triplet_batch(h, y, mine="all")
    assert torch.allclose(loss, losses.triplet(*(h[every[:, i]] for i in range(3))))
    assert losses.triplet_batch(h, y, mine="hard") >= loss
    with pytest.raises(DataError, match="holds no hard triplet"):
        losses.triplet_batch(h[:3], y[:3])


def test_overlap_numbers() -> None:
    """TP 40, FP 20, FN 10 among 100 positions."""
    p = t([1] * 60 + [0] * 40)[None, None]
    y = t([1] * 40 + [0] * 20 + [1] * 10 + [0] * 30)[None, None]
    dice, iou = 1 - losses.dice(p, y).item(), 1 - losses.jaccard(p, y).item()
    assert dice == pytest.approx(0.727273, abs=1e-6)
    assert iou == pytest.approx(0.571429, abs=1e-6)
    assert dice == pytest.approx(2 * iou / (1 + iou))
    for loss in (losses.dice, losses.jaccard):
        assert loss(y, y).item() == pytest.approx(0, abs=1e-9)
        assert loss(y, 1 - y).item() == 1
    labels = torch.arange(8).reshape(2, 4) % 3
    masks = nn.functional.one_hot(labels, 3).movedim(-1, 1).double()
    pred = normal(2, 3, 4).softmax(1)
    assert torch.equal(losses.dice(pred, labels), losses.dice(pred, masks))
    s = torch.logit(t([0.9]))
    assert losses.focal(s, t([1.0])).item() == pytest.approx(0.00105361, abs=1e-8)
    two = torch.stack([0 * s, s], 1)
    assert losses.focal(two, torch.tensor([1])).item() == pytest.approx(0.00105361, abs=1e-8)
    scores, y5 = normal(5, 3), torch.tensor([0, 1, 2, 0, 1])
    assert torch.allclose(losses.focal(scores, y5, gamma=0.0), losses.cross_entropy(scores, y5))
    alpha = t([0.2, 0.5, 1.0])
    rows = losses.focal(scores, y5, reduction="none")
    assert torch.allclose(losses.focal(scores, y5, reduction="none", alpha=alpha), rows * alpha[y5])
    quarter = losses.focal(s, t([0.0]), alpha=0.25) / losses.focal(s, t([0.0]))
    assert quarter.item() == pytest.approx(0.75)


def test_zero_one_is_flat() -> None:
    s, y = normal(50, 3), torch.arange(50) % 3
    ours = losses.zero_one(s, y).item()
    assert ours == pytest.approx(sklearn.metrics.zero_one_loss(y.numpy(), s.argmax(1).numpy()))
    assert losses.zero_one(7.5 * s, y).item() == ours  # scaling energies changes nothing
    x, W = normal(50, 4, seed=1), normal(4, 3, seed=2)
    steps = [1e-6 * normal(4, 3, seed=k) for k in range(20)]
    values = {
        losses.zero_one(x @ (W + d), y).item() - losses.zero_one(x @ W, y).item() for d in steps
    }
    assert values == {0.0}
    assert losses.zero_one(t([[1.0, 1.0]]), torch.tensor([0])).item() == 0  # first index on ties
    with pytest.raises(DataError, match="train with cross_entropy, hinge, multiclass_margin"):
        losses.zero_one(s.requires_grad_(), y)


# --- by name ---------------------------------------------------------------------------------

LOSS_NAMES = [
    "squared", "absolute", "huber", "quantile", "cross_entropy", "bce", "hinge", "brier",
    "squared_onehot", "focal", "dice", "poisson", "gamma", "normal", "laplace", "student_t",
    "negative_binomial", "lognormal", "exponential", "beta", "von_mises", "multivariate_normal",
    "plackett_luce",
]  # fmt: skip
OUTCOMES: dict[str, Callable[[int], Tensor]] = {
    "real": lambda m: normal(N, m, seed=3),
    "positive": lambda m: normal(N, m, seed=3).exp(),
    "unit": lambda m: normal(N, m, seed=3).sigmoid(),
    "angle": lambda m: normal(N, m, seed=3).clamp(-3, 3),
    "binary": lambda m: (normal(N, m, seed=3) > 0).double(),
    "count": lambda m: normal(N, m, seed=3).exp().floor(),
    "labels": lambda m: torch.arange(N) % m,
    "ranking": lambda m: normal(N, m, seed=3).argsort(dim=1),
}


@pytest.mark.parametrize("name", LOSS_NAMES)
def test_every_name_makes_a_head(name: str) -> None:
    row = LOSSES[name]
    head = head_of(name, 3)
    y = OUTCOMES[row.kind](3)
    head.check(y)
    raw = normal(N, head.n_outputs).requires_grad_()
    rows = head(raw, y)
    assert rows.shape == (N,) and bool(torch.isfinite(rows).all())
    (grad,) = torch.autograd.grad(rows.sum(), raw)
    assert bool(torch.isfinite(grad).all()) and float(grad.abs().max()) > 0
    assert head.predict(raw.detach()).shape[0] == N
    assert head.is_likelihood == row.is_likelihood
    assert head_of(head) is head


@pytest.mark.parametrize(
    "name", ["cross_entropy", "hinge", "brier", "squared_onehot", "focal", "dice"]
)
def test_label_losses_choose_the_largest_score(name: str) -> None:
    """As an energy of y, every one of them is least at the argmax."""
    head, raw = head_of(name, 4), normal(9, 4)
    e = torch.stack([head(raw, torch.full((9,), k)) for k in range(4)], 1)
    assert torch.equal(e.argmin(1), raw.argmax(1))
    assert torch.equal(head.predict(raw), raw.argmax(1))


def test_losses_of_heads_are_the_functions() -> None:
    raw, y = normal(N, 3), torch.arange(N) % 3
    pairs = {
        "cross_entropy": losses.cross_entropy, "hinge": losses.multiclass_margin,
        "brier": losses.brier, "squared_onehot": losses.squared_onehot, "focal": losses.focal,
    }  # fmt: skip
    for name, function in pairs.items():
        assert torch.allclose(head_of(name, 3)(raw, y), function(raw, y, reduction="none"))
    target = normal(N, 3, seed=4)
    for name, function in {
        "squared": losses.squared,
        "absolute": losses.absolute,
        "huber": losses.huber,
    }.items():
        assert torch.allclose(
            head_of(name, 3)(raw, target), function(raw, target, reduction="none")
        )
    smooth = head_of("cross_entropy", 3, label_smoothing=0.1)
    assert torch.allclose(
        smooth(raw, y), losses.cross_entropy(raw, y, reduction="none", label_smoothing=0.1)
    )
    assert torch.allclose(smooth.proba(raw), raw.softmax(1))
    assert torch.allclose(head_of("bce", 3)(raw, (target > 0).double()),
                          losses.bce(raw, (target > 0).double(), reduction="none"))  # fmt: skip


def test_loss_heads_are_stored(tmp_path: Any) -> None:
    head = head_of("huber", 2, delta=0.5)
    save(head, tmp_path / "head.gs")
    twin = load(tmp_path / "head.gs")
    raw, y = normal(N, 2), normal(N, 2, seed=1)
    assert torch.equal(twin(raw, y), head(raw, y))


def test_simplex() -> None:
    raw = normal(1000, 3)
    p = head_of("cross_entropy", 3).proba(raw)
    assert bool((p >= 0).all()) and torch.allclose(p.sum(1), torch.ones(1000, dtype=F64))
    two = head_of("cross_entropy", 2).proba(raw[:, :2])
    assert torch.allclose(two[:, 1], torch.sigmoid(raw[:, 1] - raw[:, 0]))
    # three equal areas of the simplex belong to the three classes, and meet at (1/3, 1/3, 1/3)
    g = np.random.default_rng(0).dirichlet(np.ones(3), 60_000)
    share = np.bincount(g.argmax(1), minlength=3) / len(g)
    assert share == pytest.approx([1 / 3] * 3, abs=0.01)


def test_defaults_by_kind_of_target() -> None:
    assert head_for("binary").name == "bernoulli"
    assert head_for("multilabel-indicator", 4).n_outputs == 4
    assert head_for("multiclass", 5).n_outputs == 5
    assert head_for("continuous").name == "normal"
    assert head_for("count").name == "poisson"
    assert head_for("ranking", 3).name == "plackett_luce"
    with pytest.raises(Unsupported, match="no default loss for a target of kind 'unknown'"):
        head_for("unknown")


def test_wrong_names_and_settings() -> None:
    with pytest.raises(Unsupported, match="no loss named 'hubert'; did you mean 'huber'"):
        head_of("hubert")
    with pytest.raises(ValueError, match="the loss 'huber' has no setting 'q'; it has delta"):
        head_of("huber", q=0.5)
    with pytest.raises(ValueError, match="'squared' has no setting 'delta'; it has none"):
        LossHead("squared", options={"delta": 1.0})
    with pytest.raises(ValueError, match="delta must be positive"):
        head_of("huber", delta=0.0)
    with pytest.raises(ValueError, match="q must lie in"):
        head_of("quantile", q=1.0)
    with pytest.raises(Unsupported, match="'hinge' is no likelihood, so it predicts values"):
        head_of("hinge", 3).dist(normal(2, 3))
    with pytest.raises(Unsupported, match="there is no loss 'cube'"):
        LossHead("cube")


def test_targets_and_weights_that_cannot_be_are_named() -> None:
    q = torch.full((2, 3), 1 / 3)
    with pytest.raises(DataError, match=r"'cross_entropy' in row 1 .* sum is 1.2; probabilities"):
        losses.cross_entropy(q, torch.tensor([[0.2, 0.3, 0.5], [0.2, 0.5, 0.5]]))
    with pytest.raises(DataError, match=r"'kl_divergence' in row 0 .* add up to 1"):
        losses.kl_divergence(q.log(), torch.tensor([[-0.5, 1.0, 0.5], [0.0, 0.0, 1.0]]))
    with pytest.raises(DataError, match="'kl_divergence' in row 1"):
        losses.kl_divergence(q.log(), torch.tensor([[1 / 3] * 3, [0.5] * 3]).log(), log_target=True)
    with pytest.raises(DataError, match=r"sample_weight\[1\] is -2, but weights count rows"):
        losses.squared(torch.zeros(2), torch.ones(2), torch.tensor([1.0, -2.0]))


def test_one_hot_targets_are_their_labels() -> None:
    """Class weights too: the mean divides by what each example weighs."""
    g = torch.Generator().manual_seed(0)
    s, y = torch.randn(7, 3, 2, generator=g), torch.randint(3, (7, 2), generator=g)
    hot = torch.nn.functional.one_hot(y, 3).movedim(-1, 1).float()
    w, rows = torch.tensor([1.0, 2.0, 3.0]), torch.arange(1.0, 8.0)
    for reduction in ("none", "sum", "mean"):
        for kw in ({}, {"class_weight": w}, {"class_weight": w, "sample_weight": rows}):
            hard = losses.cross_entropy(s, y, reduction=reduction, **kw)
            torch.testing.assert_close(
                losses.cross_entropy(s, hot, reduction=reduction, **kw), hard
            )
