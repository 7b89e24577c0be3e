"""Losses of the two players: values, gradients, and what they are in terms of cross-entropies."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from groundstate.errors import Unsupported
from groundstate.learn.losses.gan import TABLE, gan, value

F64 = torch.float64


def logits(n: int = 7) -> torch.Tensor:
    return torch.randn(n, dtype=F64, generator=torch.Generator().manual_seed(n)) * 3


def test_value_of_the_game() -> None:
    assert float(value(torch.zeros(4), torch.zeros(9))) == pytest.approx(-1.386294, abs=1e-6)
    sure = torch.full((3,), 60.0)
    assert float(value(sure, -sure)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["nonsaturating", "minimax"])
def test_the_discriminator_descends_two_cross_entropies(name: str) -> None:
    real, fake = logits(7), logits(5)
    both = bce(real, torch.ones_like(real)) + bce(fake, torch.zeros_like(fake))
    assert float(gan(name).discriminator(real, fake)) == pytest.approx(float(both), rel=1e-12)
    assert float(both) == pytest.approx(-float(value(real, fake)), rel=1e-12)


def test_generators_and_their_gradients_when_the_discriminator_is_sure() -> None:
    t = torch.tensor([-40.0], dtype=F64, requires_grad=True)
    for name, slope in (("minimax", 0.0), ("nonsaturating", -1.0)):
        (g,) = torch.autograd.grad(gan(name).generator(t).sum(), t)
        assert float(g) == pytest.approx(slope, abs=1e-12)
    t = logits()
    ones, zeros = torch.ones_like(t), torch.zeros_like(t)
    assert torch.allclose(gan("nonsaturating").generator(t), bce(t, ones, reduction="none"))
    assert torch.allclose(gan("minimax").generator(t), -bce(t, zeros, reduction="none"))


def test_other_losses_by_hand() -> None:
    s, t = torch.tensor([0.5, 2.0]), torch.tensor([-0.5, 3.0])
    square, hinge, w = gan("lsgan"), gan("hinge"), gan("wasserstein")
    assert square.real(s).tolist() == [0.125, 0.5] and square.fake(t).tolist() == [0.125, 4.5]
    assert square.generator(t).tolist() == [1.125, 2.0]
    assert hinge.real(s).tolist() == [0.5, 0.0] and hinge.fake(t).tolist() == [0.5, 4.0]
    assert hinge.generator(t).tolist() == [0.5, -3.0]
    assert float(w.discriminator(s, t)) == pytest.approx(0.0)
    energy = gan("energy", margin=2.0)  # e = -s: e(x) + (m - e(g))_+, e(g)
    assert energy.real(s).tolist() == [-0.5, -2.0] and energy.generator(t).tolist() == [0.5, -3.0]
    assert energy.fake(t).tolist() == [1.5, 5.0]


def test_smooth_labels_are_cross_entropies_to_them() -> None:
    s = logits()
    smooth = gan("nonsaturating", label_smoothing=0.1).real(s)
    assert torch.allclose(smooth, bce(s, torch.full_like(s, 0.9), reduction="none"))


@pytest.mark.parametrize("name", TABLE)
def test_gradients_and_large_logits(name: str) -> None:
    loss = pickle.loads(pickle.dumps(gan(name)))
    s = logits().requires_grad_(True)
    for part in (loss.real, loss.fake, loss.generator):
        assert torch.autograd.gradcheck(part, s)
        far = torch.tensor([-1e4, 1e4], dtype=F64)
        assert torch.isfinite(part(far)).all()


def test_unknown_names_and_settings_are_refused() -> None:
    with pytest.raises(Unsupported, match="nonsaturating, minimax, lsgan"):
        gan("cross")
    with pytest.raises(Unsupported, match="label_smoothing"):
        gan("hinge", label_smoothing=0.1)
    with pytest.raises(ValueError, match="share"):
        gan("minimax", label_smoothing=1.5)
    assert math.isclose(gan("energy", margin=3.0).margin, 3.0)
