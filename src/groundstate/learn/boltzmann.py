r"""Persistent contrastive divergence of two layers of bits, by statistics instead of autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from groundstate.energy.reference import BilinearEnergy
from groundstate.learn.base import Batch, History, Problem, Terms
from groundstate.learn.fit import solver_for
from groundstate.learn.rules.contrastive import PersistentCD
from groundstate.learn.trainer import Stochastic, _Training, sgd
from groundstate.registry import solvers


@solvers.register(
    formula=r"\nabla_W L = \operatorname{mean}_c x_c\sigma_c^\top - \operatorname{mean}_i"
    r" x_i\sigma_i^\top,\quad \sigma = \sigma(W^\top x + c)",
    make=lambda energy: BoltzmannSGD(),
)
@solver_for(BilinearEnergy, PersistentCD)
@dataclass(frozen=True)
class BoltzmannSGD(Stochastic):
    r"""``Stochastic`` for :math:`e = -x^\top Wz - x^\top b - z^\top c` with ``PersistentCD``.

    The gradient of a free energy is known, :math:`\nabla_W F = -x\sigma^\top,\ \nabla_b F = -x,\
    \nabla_c F = -\sigma` with :math:`\sigma = \sigma(W^\top x + c)`, so a step is the difference of
    such statistics between the rows and the chains. Settings, mini-batches, chains, callbacks and
    checkpoints are those of ``Stochastic``.
    """

    def reason_against(self, problem: Problem) -> str | None:
        rule = problem.rule
        if not isinstance(problem.energy, BilinearEnergy) or not isinstance(rule, PersistentCD):
            return "it is for two layers of bits with PersistentCD"
        if rule.source.kernel is not None or rule.source.reset_prob > 0:
            return "its chains move by Gibbs sweeps and never start afresh"
        if rule.contrasted(problem.energy) != ("x",) or rule.latent != "marginalise":
            return "it contrasts x with z summed out"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        return super().reason_against(problem)

    def run(self, problem: Problem) -> History:
        return _Statistics(self, problem).run()


class _Statistics(_Training):
    """The training loop with its own step; the first step, which makes the chains, is generic."""

    decays = False  # the step below differentiates the penalty itself
    energy: BilinearEnergy
    rule: PersistentCD

    def __init__(self, settings: Stochastic, problem: Problem) -> None:
        super().__init__(settings, problem)
        self.history.solver = "BoltzmannSGD"

    @torch.no_grad()
    def _step(self, batch: Batch, weight: Tensor | None, total: float) -> Any:
        chains = self.rule.source.chains
        if not chains:
            with torch.enable_grad():
                return super()._step(batch, weight, total)
        if self.settings.schedule is not None:
            self._set_rate()
        x, v = batch["x"], self._moved(chains["z"], chains["x"])
        share = x.new_full((len(x),), 1 / total) if weight is None else weight / total
        mass = 1.0 if not self.feed.sharded else float(share.sum())
        up, dream = self.energy.up(x), self.energy.up(v)
        objective = self._gradients(x, share, up, v, mass / len(v), dream)
        if self.penalty is not None:
            with torch.enable_grad():
                penalty = self.penalty(self.energy) / (self.feed.total_weight * self.shards.world)
                for p, g in zip(self.theta, torch.autograd.grad(penalty, self.theta)):
                    assert p.grad is not None
                    p.grad += g
            objective = objective + penalty.detach()
        if self.feed.sharded:
            self._reduce_gradients()
        if self.settings.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.theta, self.settings.clip_norm)
        if self.settings.optimizer is sgd:  # the same arithmetic without the bookkeeping
            rate = self.optimizer.param_groups[0]["lr"]
            grads = [p.grad for p in self.theta if p.grad is not None]
            torch._foreach_add_(self.theta, grads, alpha=-rate)
        else:
            self.optimizer.step()
        if self.settings.average is not None:
            self._accumulate()
        self.losses.append(objective)
        self.weights.append(total)
        return self._terms(x, v)

    def _moved(self, z: Tensor, v: Tensor) -> Tensor:
        """k sweeps of the chains, in their own buffers; where x stands."""
        (n, l), d = z.shape, v.shape[1]
        for _ in range(self.rule.source.k):
            u = torch.rand(n, l + d, generator=self.generator, device=v.device, dtype=v.dtype)
            torch.lt(u[:, :l], torch.sigmoid(self.energy.up(v)), out=z)
            torch.lt(u[:, l:], torch.sigmoid(self.energy.down(z)), out=v)
        return v

    def _gradients(
        self, x: Tensor, share: Tensor, up: Tensor, v: Tensor, each: float, dream: Tensor
    ) -> Tensor:
        """Set the gradients; the weighted difference of free energies, a scalar."""
        energy = self.energy
        there, here = torch.sigmoid(dream) * each, torch.sigmoid(up) * share[:, None]
        energy.W.grad = torch.addmm(v.T @ there, x.T, here, alpha=-1.0)
        b_grad = v.sum(0) * each - share @ x
        energy.b.grad = b_grad
        energy.c.grad = there.sum(0) - here.sum(0)
        soft = softplus(dream).sum() * each - softplus(up).sum(1) @ share
        return torch.dot(energy.b, b_grad) + soft

    def _terms(self, x: Tensor, v: Tensor) -> Callable[[], Terms]:
        v = v.clone()

        def terms() -> Terms:
            with torch.no_grad():
                positive, contrast = -self.energy.over_z(x), -self.energy.over_z(v).mean()
            parts = (positive, contrast.expand_as(positive))
            return Terms(positive - contrast, lambda: parts, exact=False, is_objective=False)

        return terms


__all__ = ["BoltzmannSGD"]
