"""The turns of several players in one training run: before and after the step of the main one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from groundstate.compute.reduce import current
from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule
from groundstate.learn.rules.players import Follow, Move, Optimizer, main_parameters, moves_of
from groundstate.learn.train.optimizers import Update


class Turns:
    """The other players of one training run; a solver asks it to play before and after its step.

    Parameters
    ----------
    rule, energy : where the moves come from
    optimizer, lr : of players that bring none

    Attributes
    ----------
    moves : dict of ``Move``
    optimizers, updates : one per move, and its step
    """

    def __init__(self, rule: Rule, energy: Energy, optimizer: Optimizer, lr: float) -> None:
        self.rule, self.energy = rule, energy
        self.moves = moves_of(rule, energy)
        self.follows: Sequence[Follow] = tuple(getattr(rule, "follows", ()))
        self.rates = {name: m.lr or lr for name, m in self.moves.items()}
        self.optimizers = {
            name: (m.optimizer or optimizer)(m.parameters, self.rates[name])
            for name, m in self.moves.items()
        }
        self.updates = {name: Update(optimizer) for name, optimizer in self.optimizers.items()}
        # a rule whose parameters live in a set brings them back into it after every step
        self._project = getattr(rule, "project", None)
        self.early = any(move.before for move in self.moves.values())
        # a rule whose inner hook moves nothing still wants to be asked (it may refresh its state)
        self._bare = None if self.moves else getattr(rule, "inner", None)

    def __bool__(self) -> bool:
        return bool(self.moves or self.follows or self._bare)

    def main(self) -> list[Tensor]:
        """The parameters of the main player: energy and rule, without what others move."""
        return main_parameters(self.rule, self.energy, self.moves)

    def play(
        self,
        before: bool,
        step: int,
        batch: Batch,
        generator: torch.Generator | None,
        factor: float = 1.0,
        share: float | None = None,
    ) -> None:
        """Let the players of this side of the main step have their turn.

        Parameters
        ----------
        before : which side of the main player's step
        step : number of the main player's step, from 0
        factor : on the learning rates, from the schedule
        share : this process's part of the batch when gradients are summed over processes
        """
        for name, move in self.moves.items():
            if move.before == before and step % move.every == 0:
                self._turn(name, move, batch, generator, factor, share)
        if before:
            return
        if self._bare is not None:
            self._bare(self.energy, batch, generator=generator)
        for follow in self.follows:
            if step % follow.every == 0:
                follow()
        if self._project is not None:
            self._project(self.energy)

    def _turn(
        self,
        name: str,
        move: Move,
        batch: Batch,
        generator: torch.Generator | None,
        factor: float,
        share: float | None,
    ) -> None:
        optimizer = self.optimizers[name]
        if factor != 1.0 or optimizer.param_groups[0]["lr"] != self.rates[name]:
            for group in optimizer.param_groups:
                group["lr"] = self.rates[name] * factor
        for _ in range(move.steps):
            loss = move.loss(self.energy, batch, generator=generator)
            if loss is None:
                return
            for p in move.parameters:
                p.grad = None
            (loss if share is None else share * loss).backward(inputs=list(move.parameters))
            if share is not None:
                _summed(move.parameters)
            if move.clip is not None:
                nn.utils.clip_grad_norm_(move.parameters, move.clip)
            self.updates[name]()


def _summed(parameters: Iterable[Tensor]) -> None:
    grads = [p.grad for p in parameters if p.grad is not None]
    flat = current().sum(torch.cat([g.reshape(-1) for g in grads]))
    for g, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
        g.copy_(part.view_as(g))
