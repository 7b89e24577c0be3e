r"""Several players in one training loop: who lowers what, how often, and in which order.

The main player is the energy, which lowers the rule's loss. A rule may name others, each with its
own parameters, loss and rhythm:

.. math:: \theta \leftarrow \theta - \eta\,\nabla_\theta L(\theta, \phi), \qquad
    \phi \leftarrow \phi - \eta_\phi\,\nabla_\phi M(\theta, \phi) \quad (k \text{ times})

Generators against discriminators, actors beside critics and target networks that follow are all
written this way; the loop stays the one of ``Stochastic``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import foreach_lerp_
from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms

Optimizer = Callable[..., torch.optim.Optimizer]  # (parameters, lr)


class Loss(Protocol):
    """A player's loss: a scalar of the energy and the rows; None sits this turn out."""

    def __call__(
        self, energy: Energy, batch: Batch, generator: torch.Generator | None = None
    ) -> Tensor | None: ...


@dataclass(frozen=True)
class Move:
    """What one player does in every step of the main one.

    Attributes
    ----------
    loss : ``(energy, batch, generator) -> scalar or None``
    parameters : what the player moves; nothing else gets a gradient from its loss
    steps : how many steps it takes in its turn
    every : it has a turn in every so many-th step of the main player
    before : whether its turn comes before the main player's
    lr, optimizer : its own; None takes those of the solver
    clip : largest norm of its gradient
    """

    loss: Loss
    parameters: tuple[Tensor, ...]
    steps: int = 1
    every: int = 1
    before: bool = False
    lr: float | None = None
    optimizer: Optimizer | None = None
    clip: float | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.parameters:
            raise ValueError("a player needs parameters to move")


@dataclass(frozen=True)
class Follow:
    r"""A copy that follows slowly, :math:`\bar\phi \leftarrow (1-\tau)\bar\phi + \tau\phi`.

    Attributes
    ----------
    target, source : modules of the same shape
    tau : 1 copies
    every : steps between updates
    """

    target: nn.Module
    source: nn.Module
    tau: float = 0.005
    every: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.tau <= 1:
            raise ValueError(f"tau must be in (0, 1], got {self.tau}")

    @torch.no_grad()
    def __call__(self) -> None:
        targets, sources = list(self.target.parameters()), list(self.source.parameters())
        foreach_lerp_([p.detach() for p in targets], [p.detach() for p in sources], self.tau)


def moves_of(rule: Rule, energy: Energy) -> dict[str, Move]:
    """The moves of a rule: those it declares, or one step on its ``inner`` loss, or none."""
    declared: Callable[[Energy], dict[str, Move]] | None = getattr(rule, "moves", None)
    if declared is not None:
        return declared(energy)
    inner: Loss | None = getattr(rule, "inner", None)
    own = tuple(p for p in rule.parameters() if p.requires_grad)
    return {} if inner is None or not own else {"inner": Move(inner, own)}


def main_parameters(
    rule: Rule, energy: Energy, moves: Mapping[str, Move] | None = None
) -> list[Tensor]:
    """The parameters of the main player: energy and rule, without what others move."""
    moves = moves_of(rule, energy) if moves is None else moves
    taken = {id(p) for m in moves.values() for p in m.parameters}
    for follow in getattr(rule, "follows", ()):
        taken |= {id(p) for p in follow.target.parameters()}
    every = {id(p): p for p in (*energy.parameters(), *rule.parameters())}
    return [p for key, p in every.items() if p.requires_grad and key not in taken]


@dataclass(frozen=True)
class Player:
    """One further player of ``Players``.

    Attributes
    ----------
    loss : a rule, or a function ``(energy, batch, generator) -> scalar``
    module : what the player moves
    steps, every, before, lr, optimizer, clip
        See ``Move``.
    """

    loss: Rule | Loss
    module: nn.Module
    steps: int = 1
    every: int = 1
    before: bool = False
    lr: float | None = None
    optimizer: Optimizer | None = None
    clip: float | None = None


class Players(Rule):
    r"""A rule with further players: the energy lowers ``main``, every other its own loss.

    Parameters
    ----------
    main : Rule
        What the energy lowers.
    players : dict of ``Player``, in the order of their turns
    follows : ``Follow`` s, updated after all turns

    Examples
    --------
    The energy goes to the mean of the data, and a second player chases the energy:

    >>> import torch
    >>> from groundstate.energy import Energy, Real
    >>> from groundstate.learn import NLL, Stochastic, fit, sgd
    >>> class Bell(Energy):
    ...     normalised = frozenset({"x"})
    ...     def __init__(self):
    ...         super().__init__(x=Real(1))
    ...         self.mean = torch.nn.Parameter(torch.zeros(1))
    ...     def forward(self, x):
    ...         return 0.5 * (x - self.mean).square().sum(-1) + 0.9189
    >>> follower = torch.nn.Linear(1, 1, bias=False)
    >>> def gap(energy, batch, generator=None):
    ...     return (follower.weight - energy.mean).square().sum()
    >>> rule = Players(NLL(), {"follower": Player(gap, follower, steps=3)})
    >>> energy, solver = Bell(), Stochastic(sgd, lr=0.1, max_epochs=200, tol=None)
    >>> _ = fit(energy, {"x": torch.ones(4, 1)}, rule, solver)
    >>> round(energy.mean.item(), 4), round(follower.weight.item(), 4)
    (1.0, 1.0)
    """

    def __init__(
        self,
        main: Rule,
        players: Mapping[str, Player],
        follows: Iterable[Follow] = (),
    ) -> None:
        super().__init__()
        self.main = main
        self.players = dict(players)
        self.follows = tuple(follows)
        self.modules_ = nn.ModuleDict({name: p.module for name, p in self.players.items()})
        self.targets_ = nn.ModuleList([f.target for f in self.follows])
        self.losses_ = nn.ModuleDict(
            {name: p.loss for name, p in self.players.items() if isinstance(p.loss, nn.Module)}
        )
        self.over, self.latent = main.over, main.latent
        self.is_objective = main.is_objective and not self.players
        self.needs_gradient, self.smooth = main.needs_gradient, main.smooth

    def moves(self, energy: Energy) -> dict[str, Move]:
        """What every player does in a step."""
        return {
            name: Move(
                _as_loss(p.loss),
                tuple(q for q in p.module.parameters() if q.requires_grad),
                *(p.steps, p.every, p.before, p.lr, p.optimizer, p.clip),
            )
            for name, p in self.players.items()
        }

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        terms: Terms = self.main(energy, batch, generator=generator)
        return terms

    def mean(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None = None,
        total: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Callable[[], Terms]]:
        return self.main.mean(energy, batch, weight, total, generator)

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return self.main.is_exact(energy, batch)

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        return self.main.contrasted(energy)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        return self.main.reason_against(energy, batch)


def _as_loss(loss: Any) -> Loss:
    if not isinstance(loss, Rule):
        given: Loss = loss
        return given
    rule = loss

    def scalar(
        energy: Energy, batch: Batch, generator: torch.Generator | None = None
    ) -> Tensor | None:
        return rule.mean(energy, batch, generator=generator)[0]

    return scalar
