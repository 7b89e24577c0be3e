r"""Learning on changed inputs: augmentation, mixed examples, noisy labels and cells around any rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.rules.inner import suggested
from groundstate.learn.rules.players import Loss, Move, moves_of
from groundstate.learn.rules.softmin import SoftMin
from groundstate.nn.augment import Augment
from groundstate.nn.blocks.noise import LabelNoise
from groundstate.registry import rules


@rules.register(
    formula=r"L = L_0(e; \tilde x, y), \quad \tilde x \sim q(\cdot \mid x)",
    make=lambda energy: Augmented(SoftMin(approximate=suggested(energy))),
)
class Augmented(Rule):
    r""":math:`L_0(e; \tilde x, y)`, a rule on augmented rows, in training only. Lowers and raises e where
    that rule does, at :math:`\tilde x` in the place of x.

    With mixed examples the loss is mixed too,
    :math:`L = \lambda L(\tilde x, y) + (1-\lambda) L(\tilde x, y')`.

    Parameters
    ----------
    rule : Rule
    augment : ``Augment``, optional
        Acts on the variable ``variable``.
    label_noise : ``LabelNoise``, optional
        Acts on y.
    variable : str, default="x"
    masks : str, optional
        Variable that moves with the pictures, such as "y" for a label of each pixel.
    outside : int, default=0
        Label of pixels that come in from outside, such as 255 where that is ignored.

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin
    >>> from groundstate.nn.augment import Noise
    >>> rule = Augmented(SoftMin(), Augment([Noise(1.0)]))
    >>> batch = {"x": torch.zeros(3, 2), "y": torch.tensor([0, 1, 1])}
    >>> rule(LinearEnergy(2, 2), batch).loss.shape
    torch.Size([3])
    """

    def __init__(
        self,
        rule: Rule,
        augment: Augment | None = None,
        label_noise: LabelNoise | None = None,
        variable: str = "x",
        masks: str | None = None,
        outside: int = 0,
    ) -> None:
        super().__init__()
        self.rule, self.augment, self.label_noise = rule, augment, label_noise
        self.variable, self.masks, self.outside = variable, masks, outside
        if masks is not None and augment is not None and augment.mixes:
            raise Unsupported("pictures with masks are not mixed; use mixup=0 and cutmix=0")
        self.over, self.latent = rule.over, rule.latent
        self.needs_gradient, self.smooth = rule.needs_gradient, rule.smooth
        self.is_objective = rule.is_objective

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        if not self.training:
            terms: Terms = self.rule(energy, batch, generator=generator)
            return terms
        changed = dict(batch)
        if self.label_noise is not None:
            changed["y"] = self.label_noise(batch["y"])
        if self.augment is None:
            terms = self.rule(energy, changed, generator=generator)
            return terms if self.label_noise is None else _drawn(terms)
        x = batch[self.variable]
        if self.masks is not None:
            labels = changed[self.masks]
            views = self.augment.together(
                x, masks=labels, outside=self.outside, generator=generator
            )
            assert isinstance(views.masks, Tensor)
            changed[self.variable], changed[self.masks] = views.images, views.masks
            return _drawn(self.rule(energy, changed, generator=generator))
        x = self.augment(x, generator)
        changed[self.variable], partner, share = self.augment.mix(x, generator)
        terms = self.rule(energy, changed, generator=generator)
        if not self.augment.mixes:
            return _drawn(terms)
        others = {k: v if k == self.variable else v[partner] for k, v in changed.items()}
        second: Terms = self.rule(energy, others, generator=generator)
        loss = share * terms.loss + (1 - share) * second.loss

        def parts() -> tuple[Tensor, Tensor]:
            positive = share * terms.positive + (1 - share) * second.positive
            return positive, positive - loss

        return Terms(loss, parts, False, terms.is_objective)

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        if self.training and (self.augment is not None or self.label_noise is not None):
            return False  # every pass draws anew
        return self.rule.is_exact(energy, batch)

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        return self.rule.contrasted(energy)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if self.variable not in batch:
            return f"there is no variable {self.variable!r} to augment; name one with variable="
        return self.rule.reason_against(energy, batch)


@rules.register(
    formula=r"L = L_0(e; x + \delta(u - \tfrac12), y), \quad u \sim U(0, 1)",
    make=lambda energy: Dequantised(SoftMin(approximate=suggested(energy)), torch.zeros(())),
)
class Dequantised(Rule):
    r""":math:`L_0(e; x + \delta(u - \tfrac12), y)`, :math:`u \sim U(0, 1)`: a rule on rows that are spread
    over the cells they stand for. Lowers and raises e where that rule does.

    Of a log-likelihood this bounds that of the cells,
    :math:`E_u\log p(x + \delta u) \le \log\int p(x + \delta u)\,du`, in training and beside it.

    Parameters
    ----------
    rule : Rule
    cells : width :math:`\delta` of the cell of each coordinate, ``(d,)``; 0 where a value is a point
    variable : str, default="x"

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin
    >>> rule = Dequantised(SoftMin(), torch.tensor([1.0, 0.0]))
    >>> rule(LinearEnergy(2, 2), {"x": torch.zeros(3, 2), "y": torch.tensor([0, 1, 1])}).loss.shape
    torch.Size([3])
    """

    cells: Tensor

    def __init__(self, rule: Rule, cells: Tensor, variable: str = "x") -> None:
        super().__init__()
        self.rule, self.variable = rule, variable
        self.register_buffer("cells", cells)
        self.over, self.latent = rule.over, rule.latent
        self.needs_gradient, self.smooth = rule.needs_gradient, rule.smooth
        self.is_objective = rule.is_objective

    @property
    def recordable(self) -> bool:
        """As the rule, with draws of its own."""
        return bool(self.rule.recordable)

    def moves(self, energy: Energy) -> dict[str, Move]:
        """What further players of the rule do, on rows that are spread as well."""
        return {
            name: replace(move, loss=self._spread_loss(move.loss))
            for name, move in moves_of(self.rule, energy).items()
        }

    @property
    def follows(self) -> tuple[Any, ...]:
        """Copies that follow, of the rule."""
        return tuple(getattr(self.rule, "follows", ()))

    def project(self, energy: Energy) -> None:
        """What the rule does to θ after a step."""
        then = getattr(self.rule, "project", None)
        if then is not None:
            then(energy)

    def _spread_loss(self, loss: Loss) -> Loss:
        def spread(
            energy: Energy, batch: Batch, generator: torch.Generator | None = None
        ) -> Tensor | None:
            return loss(energy, self._spread(batch, generator), generator)

        return spread

    def _spread(self, batch: Batch, generator: torch.Generator | None) -> dict[str, Tensor]:
        x = batch[self.variable]
        u = torch.rand(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        return {**batch, self.variable: x + self.cells.to(x.dtype) * (u - 0.5)}

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        return _drawn(self.rule(energy, self._spread(batch, generator), generator=generator))

    def mean(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None = None,
        total: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Callable[[], Terms]]:
        spread = self._spread(batch, generator)
        return self.rule.mean(energy, spread, weight, total, generator)

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False

    def make_room(self, state: Mapping[str, Any]) -> None:
        own = {k.removeprefix("rule."): v for k, v in state.items() if k.startswith("rule.")}
        self.rule.make_room(own)

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        return self.rule.contrasted(energy)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if self.variable not in batch:
            return f"there is no variable {self.variable!r} to spread; name one with variable="
        if not energy.spaces[self.variable].is_real:
            return (
                f"{self.variable!r} lives in {energy.spaces[self.variable]!r}, which has no cells"
            )
        return self.rule.reason_against(energy, batch)


def _drawn(terms: Terms) -> Terms:
    """Terms of one draw among many."""
    return Terms(terms.loss, lambda: (terms.positive, terms.contrast), False, terms.is_objective)
