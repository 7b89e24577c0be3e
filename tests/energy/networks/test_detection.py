"""The energy of a set of objects, and the rule that learns it from a balanced sample of boxes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from groundstate.compute.rows import Objects
from groundstate.energy import DetectionEnergy, LinearEnergy
from groundstate.energy.registering import example_rows
from groundstate.energy.spaces.containers import box_masks
from groundstate.errors import Unsupported
from groundstate.learn.rules import BalancedSample
from groundstate.learn.rules.assigned import augmented, mirrored
from groundstate.nn.augment import Affine, Augment
from groundstate.nn.detection.rcnn import MaskRCNN
from groundstate.store import dumps, loads

F64 = torch.float64


def made(**settings: Any) -> DetectionEnergy:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        net = MaskRCNN(
            3, fpn=8, levels=2, sizes=(8, 16, 32), hidden=16, mask=4, proposals=(40, 30),
            anchors_sampled=32, regions_sampled=16, **settings,
        )  # fmt: skip
    return DetectionEnergy(net, (3, 32, 40), 2, [0.5] * 3, [0.25] * 3).double()


def rows(energy: DetectionEnergy, n: int = 5) -> dict[str, Any]:
    return dict(example_rows(energy, n, torch.Generator().manual_seed(0)))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def taken(batch: dict[str, Any], index: list[int]) -> dict[str, Any]:
    return {k: v[torch.tensor(index)] for k, v in batch.items()}


def test_one_energy_per_row_that_sees_no_other_row() -> None:
    energy = made().eval()
    batch = rows(energy)
    with torch.no_grad():
        e = energy(**batch)
        assert e.shape == (5,) and bool((e >= 0).all())
        order = [3, 0, 4, 1, 2]
        assert torch.allclose(energy(**taken(batch, order)), e[order], atol=1e-9)
        alone = torch.cat([energy(**taken(batch, [i])) for i in range(5)])
    assert torch.allclose(alone, e, atol=1e-9)


def test_the_energy_of_what_is_there_falls_by_learning_it() -> None:
    energy = made()
    batch = rows(energy, 2)
    rule, optimizer = BalancedSample(), torch.optim.Adam(energy.parameters(), 3e-3)
    with torch.no_grad():
        before = energy.eval()(**batch)
    for step in range(60):
        optimizer.zero_grad()
        rule.mean(energy.train(), batch, generator=seeded(step))[0].backward()
        optimizer.step()
    with torch.no_grad():
        after = energy.eval()(**batch)
    assert bool((after < 0.7 * before).all())


def test_a_weight_of_two_is_the_row_twice() -> None:
    energy, rule = made(), BalancedSample()
    batch = rows(energy)
    weight = torch.tensor([1.0, 2.0, 1.0, 1.0, 3.0], dtype=F64)
    twice = taken(batch, [0, 1, 1, 2, 3, 4, 4, 4])
    losses, grads = [], []
    for b, w in ((batch, weight), (twice, torch.ones(8, dtype=F64)), (twice, None)):
        loss = rule.mean(energy, b, w, 8.0, seeded())[0]
        losses.append(float(loss.detach()))
        grads.append(
            torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(energy.parameters()))])
        )
    assert losses[1] == pytest.approx(losses[0], abs=1e-10)
    assert losses[2] == pytest.approx(losses[0], abs=1e-10)
    assert torch.allclose(grads[0], grads[1], atol=1e-9)


def test_rows_weighted_zero_do_not_count() -> None:
    energy, rule = made(), BalancedSample()
    batch = rows(energy)
    zero = rule.mean(energy, batch, torch.tensor([1.0, 0, 1, 1, 0], dtype=F64), 3.0, seeded())[0]
    less = rule.mean(energy, taken(batch, [0, 2, 3]), None, 3.0, seeded())[0]
    assert float(zero.detach()) == pytest.approx(float(less.detach()), abs=1e-10)


def test_the_mean_of_the_rows_is_the_objective() -> None:
    energy, rule = made(), BalancedSample()
    batch = rows(energy)
    terms = rule(energy, batch, generator=seeded())
    objective = rule.mean(energy, batch, generator=seeded())[0]
    assert torch.allclose(terms.loss.mean(), objective)
    assert not terms.exact and terms.loss.shape == (5,)


def test_the_generator_chooses_and_nothing_else() -> None:
    energy, rule = made(), BalancedSample()
    batch = rows(energy)
    state = torch.get_rng_state()
    one, same, other = (rule(energy, batch, generator=seeded(s)).loss for s in (0, 0, 1))
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert torch.equal(rule(energy, batch).loss, rule(energy, batch).loss)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_batch_of_nothing_but_background_learns() -> None:
    energy, rule = made(), BalancedSample()
    y = Objects.of([([], [], torch.zeros(0, 32, 40))] * 2).floating(F64)
    loss = rule.mean(energy, {"x": torch.rand(2, 3, 32, 40, dtype=F64), "y": y})[0]  # type: ignore[dict-item]
    loss.backward()
    assert torch.isfinite(loss)


def test_other_energies_are_refused() -> None:
    energy = LinearEnergy(2, 3)
    batch = {"x": torch.zeros(1, 2), "y": torch.zeros(1).long()}
    with pytest.raises(Unsupported, match="no energy of sets of objects"):
        BalancedSample()(energy, batch)


def test_it_is_kept_in_a_file() -> None:
    energy = made().eval()
    batch = rows(energy, 2)
    back = loads(dumps(energy)).eval()
    with torch.no_grad():
        assert torch.equal(back(**batch), energy(**batch))
        for a, b in zip(energy.detect(batch["x"]), back.detect(batch["x"]), strict=True):
            assert torch.equal(a.boxes, b.boxes) and torch.equal(a.scores, b.scores)


def test_mirrored_pictures_take_their_objects_along() -> None:
    energy = made()
    batch = rows(energy)
    which = torch.tensor([True, False, True, True, False])
    x, y = mirrored(batch["x"], batch["y"], which)
    assert torch.equal(x[0], batch["x"][0].flip(2)) and torch.equal(x[1], batch["x"][1])
    for i in range(5):
        boxes, masks = y[i].boxes.values, y[i].masks.values  # type: ignore[union-attr]
        assert torch.equal(box_masks(boxes, 32, 40), masks)  # masks of these rows are their boxes
    back = mirrored(x, y, which)[1]
    assert torch.allclose(back.boxes.values, batch["y"].boxes.values)
    rule = BalancedSample(mirror=1.0)
    found = rule(energy, batch, generator=seeded()).loss
    turned = mirrored(batch["x"], batch["y"], torch.ones(5, dtype=torch.bool))
    assert found.shape == (5,) and not torch.equal(
        found, BalancedSample()(energy, batch, generator=seeded()).loss
    )
    assert torch.equal(turned[0], batch["x"].flip(3))
    with pytest.raises(ValueError, match="share of the pictures"):
        BalancedSample(2.0)


def test_changed_pictures_take_their_objects_along() -> None:
    batch = rows(made())
    x, y = augmented(batch["x"], batch["y"], Augment([]), seeded())
    assert torch.equal(x, batch["x"]) and torch.equal(y.boxes.values, batch["y"].boxes.values)
    moves = Augment([Affine(shift=0.4, scale=(0.8, 1.25), fill="mean")])
    x, y = augmented(batch["x"], batch["y"], moves, seeded())
    assert 0 < len(y.boxes.values) < len(batch["y"].boxes.values)  # some have left
    assert len(y.labels.values) == len(y.masks.values) == len(y.boxes.values)  # type: ignore[union-attr]
    for i in range(5):  # masks of these rows are their boxes
        one = y[i]
        drawn = box_masks(one.boxes.values, 32, 40)
        area = drawn.flatten(1).sum(1).clamp(min=1)
        off = (drawn != one.masks.values).flatten(1).sum(1)  # type: ignore[union-attr]
        assert (off / area < 0.5).all()
    with pytest.raises(Unsupported, match="not mixed"):
        BalancedSample(augment=Augment([], mixup=0.2))
