r"""Persistent contrastive divergence of two layers of bits, by statistics instead of autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from groundstate.compute.foreign.torch import foreach_add_
from groundstate.energy.basic import BilinearEnergy
from groundstate.learn.base import Batch, History, Problem, Terms
from groundstate.learn.callbacks import Monitor
from groundstate.learn.fit import solver_for
from groundstate.learn.rules.contrastive import PersistentCD
from groundstate.learn.solvers.latent.boltzmann_numba import pcd_steps
from groundstate.learn.train.stochastic import Stochastic, _Training, sgd
from groundstate.registry import solvers

SMALL = 2**18  # products of a layer below which calls cost more than arithmetic
DRAWS = 2**20  # random numbers at once
_NONE = np.empty(0)


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
    """The training loop with its own step."""

    decays = False  # the step below differentiates the penalty itself
    energy: BilinearEnergy
    rule: PersistentCD

    def __init__(self, settings: Stochastic, problem: Problem) -> None:
        super().__init__(settings, problem)
        self.history.solver = "BoltzmannSGD"
        kept = settings.optimizer is sgd and self.penalty is None and not self.feed.sharded
        clipped = settings.clip_norm is not None or settings.clip_value is not None
        self.compiles = kept and not clipped and self.device.type == "cpu"

    @torch.no_grad()
    def _step(self, batch: Batch, weight: Tensor | None, total: float) -> Any:
        chains = self._started()
        if self.factor is not None or self.progress.factor != self.applied:
            self._set_rate()
        x, v = batch["x"], chains["x"]
        if self._is_small(len(x), len(v)):
            objective = self._compiled_steps(x, weight, [len(x)], [total])[0]
            return self._recorded(objective, x, v, total)
        self._moved(chains["z"], v)
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
            self.shards.gradients(self.joint)
        if self.settings.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.theta, self.settings.clip_norm)
        if self.settings.optimizer is sgd:  # the same arithmetic without the bookkeeping
            rate = self.optimizer.param_groups[0]["lr"]
            grads = [p.grad for p in self.theta if p.grad is not None]
            foreach_add_(self.theta, grads, alpha=-rate)
        else:
            self.optimizer.step()
        return self._recorded(objective, x, v, total)

    def _recorded(self, objective: Tensor, x: Tensor, v: Tensor, total: float) -> Any:
        if self.settings.average is not None:
            self._accumulate()
        self.losses.append(objective)
        self.weights.append(total)
        return self._terms(x, v)

    def _started(self) -> dict[str, Tensor]:
        """The chains; they begin at fair bits."""
        source = self.rule.source
        if not source.chains:
            spaces = self.energy.spaces
            device, dtype = self.energy.placement()
            place: dict[str, Any] = {"generator": self.generator, "device": device, "dtype": dtype}
            source._keep({k: spaces[k].draw(source.n_chains, **place) for k in ("z", "x")})
        return source.chains

    # --- few numbers on a CPU ------------------------------------------------------------

    def _is_small(self, rows: int, chains: int) -> bool:
        return self.compiles and self.energy.W.numel() * max(rows, chains) <= SMALL

    def steps(self, monitor: Monitor) -> Iterator[None]:
        """As the trainer's; where nobody looks at single steps, all in few calls."""
        run, settings, chains = self.progress, self.settings, self._started()
        plain = self.factor is None and settings.average is None and settings.accumulate == 1
        small = plain and self._is_small(1, len(chains["x"])) and not monitor.steppers
        if not small or self.feed.line is None:
            yield from super().steps(monitor)
            return
        key = self.problem.key.fold("epoch", run.epoch)
        batches = self.feed._batches(key).from_batch(run.step)
        if not self._is_small(max(batches.sizes, default=SMALL + 1), len(chains["x"])):
            yield from super().steps(monitor)
            return
        if run.factor != self.applied:
            self._set_rate()
        data, totals, at = self.problem.resident["x"], batches.totals(), 0
        block = max(1, DRAWS // (chains["x"].numel() + chains["z"].numel()) // self.rule.source.k)
        for t in range(0, len(batches), block):
            sizes = batches.sizes[t : t + block]
            part = slice(at, at + sum(sizes))
            x = data.index_select(0, batches.rows[part])
            weight = None if batches.weights is None else batches.weights[part]
            self.losses += self._compiled_steps(x, weight, sizes, totals[t : t + block]).unbind()
            at = part.stop
        self.weights += totals
        self.terms = self._terms(x[-sizes[-1] :], chains["x"])
        self.advance(len(batches))
        yield

    def _compiled_steps(
        self, x: Tensor, weight: Tensor | None, sizes: list[int], totals: list[float]
    ) -> Tensor:
        """The same steps, draw for draw, on consecutive batches of x; their objectives."""
        energy, chains = self.energy, self.rule.source.chains
        z, v = chains["z"], chains["x"]
        u = self._uniforms(z, v, len(sizes), self.rule.source.k)
        theta = (energy.W, energy.b, energy.c)
        grads = [torch.empty_like(p) if p.grad is None else p.grad for p in theta]
        values = pcd_steps(
            x.contiguous().numpy(),
            _NONE if weight is None else weight.double().numpy(),
            np.cumsum(sizes),
            np.array(totals),
            u.numpy(),
            z.numpy(),
            v.numpy(),
            *(p.detach().numpy() for p in theta),
            *(g.numpy() for g in grads),
            self.optimizer.param_groups[0]["lr"],
        )
        for p, g in zip(theta, grads):
            p.grad = g
        return torch.from_numpy(values).to(x.dtype)

    def _uniforms(self, z: Tensor, v: Tensor, *many: int) -> Tensor:
        """One number for each bit of the chains, ``(*many, n, l + d)``."""
        size = (*many, len(z), z.shape[1] + v.shape[1])
        return torch.rand(size, generator=self.generator, device=v.device, dtype=v.dtype)

    def _moved(self, z: Tensor, v: Tensor) -> None:
        """k sweeps of the chains, in their own buffers."""
        l = z.shape[1]
        for _ in range(self.rule.source.k):
            u = self._uniforms(z, v)
            torch.lt(u[:, :l], torch.sigmoid(self.energy.up(v)), out=z)
            torch.lt(u[:, l:], torch.sigmoid(self.energy.down(z)), out=v)

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
