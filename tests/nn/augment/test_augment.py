"""Augmentation: shapes kept, identity at p = 0, seeded, per example, and mixed losses."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from groundstate.energy import LinearEnergy, NetClassEnergy
from groundstate.learn import Augmented, SoftMin, Stochastic, fit
from groundstate.nn.augment import (
    Augment,
    Crop,
    Each,
    Flip,
    Mixup,
    Noise,
    Rotate,
    Shift,
    Transform,
    moves,
)
from groundstate.nn.blocks.noise import LabelNoise


def g(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(n: int = 12, h: int = 8, w: int = 6) -> Tensor:
    return torch.randn(n, 2, h, w, generator=g(9))


def all_transforms(p: float) -> list[Transform]:
    return [
        Flip(p=p),
        Shift(2, p=p),
        Crop(3, p=p),
        Rotate(30.0, p=p),
        Noise(0.5, p=p),
        Each(lambda row: row * 2, p=p),
    ]


@pytest.mark.parametrize("transform", all_transforms(0.0), ids=lambda t: type(t).__name__)
def test_p_zero_is_the_identity(transform: Transform) -> None:
    assert torch.equal(transform(images(), g()), images())


@pytest.mark.parametrize("transform", all_transforms(1.0), ids=lambda t: type(t).__name__)
def test_shapes_seeds_and_evaluation(transform: Transform) -> None:
    x = images()
    a, b = transform(x, g(3)), transform(x, g(3))
    assert a.shape == x.shape and torch.equal(a, b) and not torch.equal(a, x)
    assert torch.equal(transform.eval()(x), x)
    transform.train()


def test_p_is_the_share_of_examples() -> None:
    x = torch.ones(4000, 1, 1, 2) * torch.tensor([1.0, 2.0])
    flipped = Flip(p=0.3)(x, g())
    changed = (flipped != x).flatten(1).any(1)
    assert float(changed.double().mean()) == pytest.approx(0.3, abs=0.03)
    assert torch.equal(flipped[changed], x[changed].flip(-1))


def test_shift_moves_each_example_by_its_own_places() -> None:
    x = torch.zeros(500, 1, 7, 7)
    x[:, :, 3, 3] = 1.0
    moved = Shift(2)(x, g())
    places = moved.flatten(1).argmax(1)
    assert bool((moved.flatten(1).sum(1) == 1).all())
    rows, columns = places // 7, places % 7
    assert set(rows.tolist()) == set(columns.tolist()) == {1, 2, 3, 4, 5}
    filled = Shift(2, fill=-1.0)(torch.zeros(50, 1, 4, 4), g())
    assert set(filled.unique().tolist()) == {-1.0, 0.0}


def test_shift_of_series() -> None:
    x = torch.arange(1.0, 7.0).repeat(100, 1)
    moved = Shift(1, axes=1)(x, g())
    wanted = {(1, 2, 3, 4, 5, 6), (0, 1, 2, 3, 4, 5), (2, 3, 4, 5, 6, 0)}
    assert {tuple(map(int, row)) for row in moved.tolist()} == wanted


def test_crop_is_padding_and_cutting() -> None:
    x = images(1)
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1))
    cuts = [padded[:, :, i : i + 8, j : j + 6] for i in range(3) for j in range(3)]
    for seed in range(5):
        out = Crop(1)(x, g(seed))
        assert any(torch.equal(out, cut) for cut in cuts)


def test_quarter_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """By 90 degrees a square image turns exactly; by next to nothing it stays."""
    x = torch.randn(3, 1, 6, 6, generator=g(), dtype=torch.float64)
    torch.testing.assert_close(Rotate(1e-9)(x, g()), x, atol=1e-6, rtol=0)
    for drawn, turns in ((1.0, 1), (0.0, -1), (0.5, 0)):
        monkeypatch.setattr(moves, "uniform", lambda x, _, u=drawn: torch.full((len(x),), u))
        out = Rotate(90.0)(x, g())
        wanted = torch.rot90(x, turns, (2, 3))
        torch.testing.assert_close(out, wanted, atol=1e-5, rtol=0)


def test_rotation_keeps_the_form_of_wide_images() -> None:
    """A disc stays a disc: its area hardly changes, whatever the aspect of the image."""
    i, j = torch.meshgrid(torch.arange(40.0), torch.arange(80.0), indexing="ij")
    disc = (((i - 19.5) ** 2 + (j - 39.5) ** 2) < 144).double()[None, None]
    turned = Rotate(90.0)(disc.repeat(8, 1, 1, 1), g())
    assert float((turned - disc).abs().mean()) < 0.01


def test_mixup_by_hand() -> None:
    x = images()
    mixed, partner, share = Mixup(0.4)(x, g())
    s = share[:, None, None, None]
    torch.testing.assert_close(mixed, s * x + (1 - s) * x[partner])
    assert bool((share >= 0.5).all()) and sorted(partner.tolist()) == list(range(12))
    same, _, ones = Mixup(0.0)(x, g())
    assert torch.equal(same, x) and bool((ones == 1).all())


def test_flags_of_labels() -> None:
    assert Augment([Flip(), Shift(1)]).label_preserving
    assert not Augment([Flip(label_preserving=False)]).label_preserving
    assert not Augment([], mixup=0.2).label_preserving


def test_functions_of_one_example_are_accepted_and_checked() -> None:
    x = images()
    assert torch.equal(Augment([lambda row: row.flip(-1)])(x), x.flip(-1))
    with pytest.raises(ValueError, match=r"must keep the shape of an example, \(2, 8, 6\)"):
        Augment([lambda row: row[:1]])(x)
    with pytest.raises(ValueError, match="Rotate needs images"):
        Rotate()(torch.zeros(3, 4))
    with pytest.raises(ValueError, match="p must be a probability"):
        Flip(p=2.0)


def test_mixed_losses_are_mixed_by_the_same_share() -> None:
    energy = LinearEnergy(3, 2)
    x = torch.randn(6, 3, generator=g())
    batch = {"x": x, "y": torch.tensor([0, 1, 0, 1, 1, 0])}
    rule = Augmented(SoftMin(), Augment([], mixup=0.5))
    found = rule(energy, batch, generator=g(4)).loss
    mixed, partner, share = Mixup(0.5)(x, g(4))
    a = SoftMin()(energy, {"x": mixed, "y": batch["y"]}).loss
    b = SoftMin()(energy, {"x": mixed, "y": batch["y"][partner]}).loss
    torch.testing.assert_close(found, share * a + (1 - share) * b)
    clean = rule.eval()(energy, batch).loss
    torch.testing.assert_close(clean, SoftMin()(energy, batch).loss)


def test_augmented_training_learns_invariance() -> None:
    """With shifts in training, a net knows shifted bars that it would otherwise miss."""
    x = torch.zeros(80, 1, 1, 9)
    y = torch.arange(80) % 2
    x[y == 0, :, :, 4] = 1.0  # a point ...
    x[y == 1, :, :, 3:6] = 1.0  # ... or a bar
    moved = Shift(2, axes=1)(x, g(1))
    flat = {"x": moved.flatten(1), "y": y}

    def accuracy(rule: object) -> float:
        energy = NetClassEnergy(9, 2, torch.nn.Sequential(torch.nn.Linear(9, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)))  # noqa: E501  # fmt: skip
        solver = Stochastic(lr=0.02, batch_size=20, max_epochs=40, tol=None)
        fit(energy, {"x": x.flatten(1), "y": y}, rule, solver, random_state=0)  # type: ignore[arg-type]
        return float((energy.table("y", x=flat["x"]).argmin(1) == y).double().mean())

    torch.manual_seed(0)
    shifted = accuracy(Augmented(SoftMin(), Augment([Shift(2, axes=1)])))
    torch.manual_seed(0)
    plain = accuracy(SoftMin())
    assert shifted > 0.95 and shifted > plain


def test_label_noise_inside_a_rule() -> None:
    energy = LinearEnergy(2, 2)
    batch = {"x": torch.randn(8, 2, generator=g()), "y": torch.zeros(8, dtype=torch.int64)}
    rule = Augmented(SoftMin(), label_noise=LabelNoise(1.0, 2))
    torch.testing.assert_close(
        rule(energy, batch).loss, SoftMin()(energy, {**batch, "y": 1 - batch["y"]}).loss
    )
