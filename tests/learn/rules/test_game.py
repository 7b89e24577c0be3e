"""Discriminator against generator: steps by hand, penalties, rhythm, exact resume."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy import AdversarialEnergy, LinearEnergy
from groundstate.errors import Unsupported
from groundstate.learn import Callback, Checkpoint, Game, Run, Stochastic, fit, learn, sgd
from groundstate.learn.rules.adversarial.game import slopes
from groundstate.learn.rules.augmented import Dequantised
from groundstate.nn.adversarial import (
    Columns,
    DenseDiscriminator,
    DenseGenerator,
    GivenDiscriminator,
    GivenGenerator,
    PatchDiscriminator,
)

F64 = torch.float64


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def players(q: int = 0, d: int = 2, **settings: Any) -> AdversarialEnergy:
    return AdversarialEnergy(
        DenseDiscriminator(d, (6,), q, generator=seeded(1), **settings),
        DenseGenerator(3, (6,), [1] * d, q, generator=seeded(2)),
        d, q,
    ).double()  # fmt: skip


ROWS = {"x": torch.randn(32, 2, dtype=F64, generator=seeded(3)) + 1}


class ByHand:
    """The loop that everybody writes: D step with detached fakes, G step."""

    def __init__(self, energy: AdversarialEnergy, lr: float, n_critic: int) -> None:
        self.e, self.n_critic = energy, n_critic
        self.d = torch.optim.SGD(energy.discriminator.parameters(), lr)
        self.g = torch.optim.SGD(energy.generator.parameters(), lr)

    def step(self, x: Tensor, i: int, noise: torch.Generator) -> None:
        bce = nn.functional.binary_cross_entropy_with_logits
        fake = self.e.generator(torch.randn(len(x), 3, dtype=F64, generator=noise))
        real_s, fake_s = self.e.discriminator(x), self.e.discriminator(fake.detach())
        loss = bce(real_s, torch.ones_like(real_s)) + bce(fake_s, torch.zeros_like(fake_s))
        self.d.zero_grad()
        loss.backward()
        self.d.step()
        if i % self.n_critic == 0:
            s = self.e.discriminator(
                self.e.generator(torch.randn(len(x), 3, dtype=F64, generator=noise))
            )
            self.g.zero_grad()
            bce(s, torch.ones_like(s)).backward()
            self.g.step()


@pytest.mark.parametrize("n_critic", [1, 3])
def test_training_is_the_loop_that_everybody_writes(n_critic: int) -> None:
    ours, theirs = players(), players()
    seed = Key.of(5)
    solver = Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=7, tol=None)
    fit(ours, ROWS, Game("nonsaturating", n_critic), solver, random_state=seed)
    noise, loop = seed.fold("noise").torch(), ByHand(theirs, 0.1, n_critic)
    for i in range(7):
        loop.step(ROWS["x"], i, noise)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-12)


def test_each_player_gets_its_own_gradient_only() -> None:
    energy = players()
    rule = Game()
    move = rule.moves(energy)["generator"]
    assert {id(p) for p in move.parameters} == {id(p) for p in energy.generator.parameters()}
    terms = rule(energy, ROWS, generator=seeded())
    grads = torch.autograd.grad(
        terms.loss.sum(), list(energy.generator.parameters()), allow_unused=True
    )
    assert all(g is None for g in grads), "fakes are held fixed for the discriminator"
    assert torch.equal(terms.positive, -terms.positive.neg()) and terms.loss.shape == (32,)


class Line(nn.Module):
    """D(x) = 3x."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(3.0, dtype=F64))

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return self.w * x


def test_penalties_by_hand() -> None:
    energy = AdversarialEnergy(Line(), DenseGenerator(2, (4,), [1]).double(), 1)
    rows = {"x": torch.randn(16, 1, dtype=F64)}
    plain = Game("wasserstein")(energy, rows, generator=seeded()).loss
    gp = Game("wasserstein", penalty="gp")(energy, rows, generator=seeded()).loss
    assert torch.allclose(gp - plain, torch.full_like(plain, 40.0))  # 10 (3 - 1)^2
    r1 = Game("wasserstein", penalty="r1", strength=2.0)(energy, rows, generator=seeded()).loss
    assert torch.allclose(r1 - plain, torch.full_like(plain, 9.0))  # 2/2 * 3^2
    assert torch.allclose(slopes(energy, rows["x"]), torch.full((16, 1), 3.0, dtype=F64))


def test_clipped_weights_stay_in_their_box() -> None:
    energy = players()
    worn = Dequantised(Game("wasserstein", penalty="clip"), torch.zeros(2, dtype=F64))
    learn(energy, ROWS, worn, lr=0.05, epochs=5, batch_size=8)
    assert all(float(p.detach().abs().max()) <= 0.01 for p in energy.discriminator.parameters())
    assert any(float(p.detach().abs().max()) > 0.01 for p in energy.generator.parameters())


def test_the_generator_moves_after_so_many_steps() -> None:
    rule = Game("nonsaturating", 4)
    learn(players(), ROWS, rule, epochs=2, batch_size=4)
    assert rule.taken()[1] == 4  # 16 steps
    assert rule.taken()[1] == 0


class Killed(Callback):
    def __init__(self, after: int) -> None:
        self.after = after

    def on_step(self, run: Run) -> bool:
        return run.total_steps >= self.after


@pytest.mark.parametrize(
    "rule",
    [
        lambda: Game(),
        lambda: Game("wasserstein", 3, "gp"),
        lambda: Game("hinge", 2, "r1", 0.1),
        lambda: Game("energy", spread="auto"),
    ],
)
def test_resumed_is_uninterrupted_to_the_last_bit(rule: Any, tmp_path: Path) -> None:
    whole, broken = players(dropout=0.2), players(dropout=0.2)
    settings: dict[str, Any] = {"lr": 1e-2, "epochs": 6, "batch_size": 8, "seed": 3}
    first, second = rule(), rule()
    learn(whole, ROWS, first, **settings)
    stop = Killed(11)  # in the middle of an epoch
    saved = Checkpoint(tmp_path, every_steps=1)
    learn(broken, ROWS, rule(), callbacks=[saved, stop], **settings)
    fresh = players(dropout=0.2)
    learn(fresh, ROWS, second, resume=tmp_path, **settings)
    for a, b in zip(whole.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(first.generator_loss, second.generator_loss)


def test_the_condition_reaches_both_players() -> None:
    energy = players(q=2)
    y = torch.eye(2, dtype=F64).repeat(16, 1)
    loss = Game()(energy, {**ROWS, "y": y}, generator=seeded()).loss
    other = Game()(energy, {**ROWS, "y": y.flip(1)}, generator=seeded()).loss
    assert not torch.allclose(loss, other)
    x, z = energy.draw(4, y[:4], generator=seeded())
    again, _ = energy.draw(4, y[:4].flip(1), generator=seeded())
    assert z.shape == (4, 3) and not torch.allclose(x, again)


def test_wrong_settings_and_energies_are_refused() -> None:
    with pytest.raises(ValueError, match="penalty"):
        Game(penalty="l1")
    with pytest.raises(ValueError, match="n_critic"):
        Game(n_critic=0)
    with pytest.raises(Unsupported, match="two players"):
        fit(LinearEnergy(2, 2), {"x": torch.zeros(4, 2), "y": torch.zeros(4).long()}, Game())


# --- networks ----------------------------------------------------------------------------


def test_categories_are_crisp_and_drawn_by_their_softmax() -> None:
    columns = Columns([1, 3, 1, 2], "tanh", bits=(-1.0, 1.0))
    a = torch.tensor([[5.0, 0.0, 1.0, 2.0, -5.0, 0.3, -0.3]]).repeat(40_000, 1).requires_grad_(True)
    out = columns(a, seeded())
    assert float(out[:, 0].min().detach()) > 0.999 and float(out[:, 4].max().detach()) < -0.999
    for block, logits in ((out[:, 1:4], a[0, 1:4]), (out[:, 5:], a[0, 5:])):
        bits = (block + 1) / 2
        assert torch.equal(bits.sum(1), torch.ones(len(a))) and set(bits.unique().tolist()) == {
            0.0,
            1.0,
        }
        assert torch.allclose(bits.mean(0), logits.softmax(0), atol=0.01)
    (g,) = torch.autograd.grad(out[:, 1].sum(), a)
    assert float(g[:, 1].abs().sum()) > 0 and float(g[:, 5].abs().sum()) == 0


def test_spectral_norm_bounds_the_slope() -> None:
    energy = players(spectral_norm=True)
    learn(energy, ROWS, Game("hinge"), lr=0.05, epochs=60, batch_size=8)
    energy.eval()
    slope = slopes(energy, ROWS["x"]).detach().norm(dim=1)
    assert float(slope.max()) <= 1.02


def test_modules_of_the_user() -> None:
    made = GivenGenerator(nn.Sequential(nn.Linear(3, 8), nn.Unflatten(1, (2, 2, 2))), 3, 8)
    judged = GivenDiscriminator(nn.Sequential(nn.Conv2d(4, 1, 2)), (2, 2, 2))
    y = torch.eye(2)
    x = GivenGenerator(nn.Linear(5, 8), 3, 8)(torch.zeros(2, 3), y)
    assert made(torch.zeros(2, 3)).shape == x.shape == (2, 8)
    assert judged(x, y).shape == (2, 1)
    with pytest.raises(ValueError, match="last layer"):
        GivenGenerator(nn.Linear(3, 7), 3, 8)(torch.zeros(2, 3))


def test_patches_are_judged_one_by_one_and_averaged() -> None:
    judge = PatchDiscriminator((1, 8, 8), (1, 8, 8), base=4, depth=1)
    energy = AdversarialEnergy(judge, DenseGenerator(2, (4,), [1] * 64, 64), 64, 64)
    x, y = torch.randn(3, 64), torch.randn(3, 64)
    assert energy.logits(x, y).shape == (3, 16)
    assert torch.allclose(energy(x=x, y=y), -energy.logits(x, y).mean(1))
    twin = copy.deepcopy(energy)
    assert torch.equal(twin(x=x, y=y), energy(x=x, y=y))
