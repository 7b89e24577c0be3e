r"""A discriminator against a generator: two losses, two optimisers, one training loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.losses.gan import gan
from groundstate.learn.rules.adversarial.sampler import auto_weight, whitened_mmd, wider
from groundstate.learn.rules.players import Move, Optimizer
from groundstate.registry import rules

PENALTIES = ("gp", "r1", "clip")


@rules.register(
    formula=r"\min_D E\,\ell_1(D(x)) + E\,\ell_0(D(G(z))),\quad \min_G E\,\ell_g(D(G(z)))",
    make=lambda energy: Game(),
)
class Game(Rule):
    r""":math:`\min_D E\,\ell_1(D(x)) + E\,\ell_0(D(G(z)))`, :math:`\min_G E\,\ell_g(D(G(z)))`. The
    discriminator lowers the energy :math:`-D` of the data and raises that of what the generator makes;
    the generator lowers the energy of what it makes.

    The discriminator is the main player, one step per batch; the generator has its turn after every
    ``n_critic`` of them. Generated rows are held fixed for the discriminator and the discriminator
    for the generator. Both see the condition y of the batch. Real and generated rows pass the
    discriminator together.

    Parameters
    ----------
    loss : name of a loss, see ``groundstate.learn.losses.gan``
    n_critic : steps of the discriminator for one of the generator
    penalty : None; "gp", :math:`\lambda E(\|\nabla D(\hat x)\| - 1)^2` at points between real and
        generated rows; "r1", :math:`\tfrac\lambda2E\|\nabla D(x)\|^2` at real rows; "clip", weights of
        the discriminator stay within :math:`\pm\lambda`
    strength : λ; unless given 10 for "gp" and "r1", 0.01 for "clip"
    match : weight of :math:`\|x - G(z, y)\|_1/d` in the generator's loss, for pairs (x, y)
    spread : weight of the generator's entropy, as in ``ReverseKL``: 0, a number or "auto"
    alpha : how much wider than its draws the cloud is that it is pulled to
    label_smoothing, margin : see ``groundstate.learn.losses.gan``
    lr, optimizer : of the generator; None takes those of the solver

    Attributes
    ----------
    generator_loss : ``(2,)``, the sum of the generator's losses since the last ``taken`` and their number

    Examples
    --------
    >>> from groundstate.energy.networks.adversarial import AdversarialEnergy
    >>> from groundstate.learn import learn
    >>> from groundstate.nn.adversarial import DenseDiscriminator, DenseGenerator
    >>> e = AdversarialEnergy(DenseDiscriminator(1, (8,)), DenseGenerator(2, (8,), [1]), 1)
    >>> x = torch.randn(64, 1, generator=torch.Generator().manual_seed(0))
    >>> rule = Game()
    >>> _ = learn(e, {"x": x}, rule, epochs=2, batch_size=32)
    >>> rule.taken()[1]  # turns of the generator
    4
    """

    is_objective = False
    generator_loss: Tensor

    def __init__(
        self,
        loss: str = "nonsaturating",
        n_critic: int = 1,
        penalty: str | None = None,
        strength: float | None = None,
        *,
        match: float = 0.0,
        spread: float | str = 0.0,
        alpha: float = 1.5,
        label_smoothing: float = 0.0,
        margin: float = 1.0,
        lr: float | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__()
        if penalty is not None and penalty not in PENALTIES:
            raise ValueError(f"penalty must be None or one of {PENALTIES}, got {penalty!r}")
        if n_critic < 1:
            raise ValueError(f"n_critic must be at least 1, got {n_critic}")
        default = 0.01 if penalty == "clip" else 10.0
        self.loss, self.label_smoothing, self.margin = loss, label_smoothing, margin
        self.losses = gan(loss, label_smoothing=label_smoothing, margin=margin)
        self.n_critic, self.penalty = n_critic, penalty
        self.strength = default if strength is None else float(strength)
        self.match, self.spread, self.alpha = match, spread, alpha
        self.lr, self.optimizer = lr, optimizer
        self.over = "x"
        self.needs_gradient = penalty in ("gp", "r1")
        self.register_buffer("generator_loss", torch.zeros(2, dtype=torch.float64))

    def config(self) -> dict[str, Any]:
        names = (
            "loss", "n_critic", "penalty", "strength", "match", "spread", "alpha",
            "label_smoothing", "margin", "lr",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    # --- the discriminator ---------------------------------------------------------------

    def _logits(
        self, energy: Any, batch: Batch, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of real rows and of fresh ones, ``(B, k)`` each, and the fresh rows."""
        x, y = batch["x"], batch.get("y")
        with torch.no_grad():
            fake = energy.draw(len(x), y, generator=generator)[0]
        s = energy.logits(torch.cat([x, fake]), None if y is None else torch.cat([y, y]))
        real, made = s.split(len(x))
        return real, made, fake

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        real, made, fake = self._logits(energy, batch, generator)
        positive, contrast = rows(self.losses.real(real)), -rows(self.losses.fake(made))
        if self.needs_gradient:
            positive = positive + self._smoothness(energy, batch, fake, generator)
        return Terms(
            positive - contrast, lambda: (positive, contrast), exact=False, is_objective=False
        )

    def _smoothness(
        self, energy: Any, batch: Batch, fake: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        x, y = batch["x"], batch.get("y")
        if self.penalty == "gp":
            share = torch.rand(len(x), 1, generator=generator, device=x.device, dtype=x.dtype)
            x = torch.lerp(fake.to(x.dtype), x, share)  # a generator under autocast is shorter
        slope = slopes(energy, x, y)
        if self.penalty == "gp":
            return self.strength * (slope.norm(dim=1) - 1).square()
        return 0.5 * self.strength * slope.square().sum(1)

    # --- the generator -------------------------------------------------------------------

    def moves(self, energy: Energy) -> dict[str, Move]:
        """The generator's turn."""
        assert isinstance(energy.generator, nn.Module)
        own = tuple(p for p in energy.generator.parameters() if p.requires_grad)
        turn = Move(self.inner, own, every=self.n_critic, lr=self.lr, optimizer=self.optimizer)
        return {"generator": turn}

    def inner(self, energy: Any, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """The generator's loss, a scalar."""
        x, y = batch["x"], batch.get("y")
        made = energy.draw(len(x), y, generator=generator)[0]
        loss = self.losses.generator(energy.logits(made, y)).mean()
        if self.match:
            loss = loss + self.match * (made - x).abs().mean()
        if self.spread:
            d, alpha = made.shape[1], self.alpha
            weight = auto_weight(d, alpha) if self.spread == "auto" else float(self.spread)
            loss = loss + weight * whitened_mmd(made, wider(made, alpha, generator))
        self.generator_loss[0] += loss.detach()
        self.generator_loss[1] += 1
        return loss

    @torch.no_grad()
    def project(self, energy: Any) -> None:
        """After a step: clipped weights back into their box."""
        if self.penalty == "clip":
            for p in energy.discriminator.parameters():
                p.clamp_(-self.strength, self.strength)

    def taken(self) -> tuple[float, int]:
        """The generator's mean loss since the last call, and over how many turns."""
        total, count = self.generator_loss.tolist()
        self.generator_loss.zero_()
        return (total / count if count else float("nan")), int(count)

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        lacking = [n for n in ("discriminator", "generator", "draw") if not hasattr(energy, n)]
        if lacking:
            return (
                f"a game needs an energy with two players, a discriminator and a generator, but it has "
                f"no {' and no '.join(lacking)}; use AdversarialEnergy"
            )
        return None


def rows(values: Tensor) -> Tensor:
    """One number per row: the mean over its logits."""
    return values[:, 0] if values.shape[1] == 1 else values.mean(1)


def slopes(energy: Any, x: Tensor, y: Tensor | None = None) -> Tensor:
    r""":math:`\nabla_xD(x, y)`, ``(B, d)``, differentiable in θ."""
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        s = rows(energy.logits(x, y)).sum()
        (slope,) = torch.autograd.grad(s, x, create_graph=True)
    return slope
