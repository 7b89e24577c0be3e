r"""Learning of two layers of bits by statistics instead of autograd."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from groundstate.compute.foreign.torch import affine, foreach_add_
from groundstate.compute.weight_line.batches import Batches
from groundstate.energy.basic import BilinearEnergy
from groundstate.learn.base import Batch, History, Problem, Terms
from groundstate.learn.callbacks import Monitor
from groundstate.learn.rules.contrastive import ContrastiveDivergence, PersistentCD
from groundstate.learn.rules.negatives.chains import Persistent
from groundstate.learn.rules.negatives.tempered import State, Tempered, exchange
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.latent.boltzmann_numba import pcd_steps
from groundstate.learn.train.stochastic import Stochastic, _Training, sgd
from groundstate.math.distributions.bernoulli_numba import fill_uniforms
from groundstate.registry import solvers

F64 = NDArray[np.float64]

SMALL = 2**18  # products of a layer below which calls cost more than arithmetic
DRAWS = 2**20  # random numbers at once
_NONE = np.empty(0)


@solvers.register(
    formula=r"\nabla_W L = \operatorname{mean}_c x_c\sigma_c^\top - \operatorname{mean}_i"
    r" x_i\sigma_i^\top,\quad \sigma = \sigma(W^\top x + c)",
    make=lambda energy: BoltzmannSGD(),
)
@dataclass(frozen=True)
class BoltzmannSGD(Stochastic):
    r"""``Stochastic`` for :math:`e = -x^\top Wz - x^\top b - z^\top c` with ``PersistentCD``,
    ``ContrastiveDivergence`` or, where a layer can be listed, ``NLL``.

    The gradient of a free energy is known, :math:`\nabla_W F = -x\sigma^\top,\ \nabla_b F = -x,\
    \nabla_c F = -\sigma` with :math:`\sigma = \sigma(W^\top x + c)`, so a step is the difference of
    such statistics between the rows and the negatives: chains, or all states by their
    probabilities. The logits that give the statistics of a chain also give its next hidden bits, so
    a step has three matrix products. Settings, mini-batches, chains, callbacks and checkpoints are
    those of ``Stochastic``.
    """

    def reason_against(self, problem: Problem) -> str | None:
        rule = problem.rule
        if type(problem.energy) is not BilinearEnergy or not _known(rule):
            return "it is for two layers of bits with PersistentCD, ContrastiveDivergence or NLL"
        source = getattr(rule, "source", None)
        if source is not None and source.kernel is not None:
            return "its chains move by Gibbs sweeps"
        if isinstance(source, Persistent) and source.reset_prob > 0:
            return "its chains never start afresh"
        if source is not None and not isinstance(source, Persistent) and source.n_chains != 1:
            return "it has one chain for each row"
        if source is None and problem.energy.ability("log_partition", "x", "z") is None:
            return "neither layer can be listed"
        if rule.contrasted(problem.energy) != ("x",) or rule.latent != "marginalise":
            return "it contrasts x with z summed out"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        return super().reason_against(problem)

    def run(self, problem: Problem) -> History:
        return _Statistics(self, problem).run()


def _known(rule: Any) -> bool:
    return type(rule) in (PersistentCD, ContrastiveDivergence, NLL)


class _Statistics(_Training):
    """The training loop with its own step."""

    decays = False  # the step below differentiates the penalty itself
    energy: BilinearEnergy
    rule: Any

    def __init__(self, settings: Stochastic, problem: Problem) -> None:
        super().__init__(settings, problem)
        self.history.solver = "BoltzmannSGD"
        kept = settings.optimizer is sgd and self.penalty is None and not self.feed.sharded
        clipped = settings.clip_norm is not None or settings.clip_value is not None
        self.persistent = isinstance(self.rule, PersistentCD)
        self.tempered = self.persistent and isinstance(self.rule.source, Tempered)
        self.compiles = kept and not clipped and self.device.type == "cpu" and self.persistent
        self.compiles &= not self.tempered and self.energy.placement()[1] is torch.float32
        self.exact = isinstance(self.rule, NLL)

    @torch.no_grad()
    def _step(self, batch: Batch, weight: Tensor | None, total: float) -> Any:
        if self.factor is not None or self.progress.factor != self.applied:
            self._set_rate()
        x = batch["x"]
        if self.persistent and self._is_small(len(x), len(self._started()["x"])):
            rates = np.array([self.optimizer.param_groups[0]["lr"]])
            value, ends = self._compiled_steps(x, weight, [len(x)], [total], rates)
            return self._recorded(torch.from_numpy(value), torch.from_numpy(ends[0]), total)
        share = x.new_full((len(x),), 1 / total) if weight is None else weight / total
        mass = 1.0 if not self.feed.sharded else float(share.sum())
        objective, means = self._listed(x, share) if self.exact else self._moved(x, share, mass)
        if self.penalty is not None:
            with torch.enable_grad():
                penalty = self.penalty(self.energy) / (self.feed.total_weight * self.shards.world)
                found = torch.autograd.grad(penalty, self.theta, allow_unused=True)
            for p, g in zip(self.theta, found):
                if g is not None and p.grad is not None:
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
        return self._recorded(objective[None].double(), means, total)

    def _recorded(self, objective: Tensor, means: Tensor, total: float) -> Any:
        if self.settings.average is not None:
            self._accumulate()
        self.readings.add(objective, total)
        return self._terms(means)

    def _started(self) -> dict[str, Tensor]:
        """The chains; they begin at fair bits."""
        source = self.rule.source
        if not source.chains:
            spaces = self.energy.spaces
            device, dtype = self.energy.placement()
            place: dict[str, Any] = {"generator": self.generator, "device": device, "dtype": dtype}
            source._keep({k: spaces[k].draw(source.n_chains, **place) for k in ("z", "x")})
        chains: dict[str, Tensor] = source.chains
        return chains

    # --- few numbers on a CPU ------------------------------------------------------------

    def _is_small(self, rows: int, chains: int) -> bool:
        return self.compiles and self.energy.W.numel() * max(rows, chains) <= SMALL

    def steps(self, monitor: Monitor) -> Iterator[None]:
        """As the trainer's; where nobody looks at single steps, all in few calls."""
        batches = None if monitor.steppers else self._batches_of(self.progress.epoch)
        if batches is None:
            yield from super().steps(monitor)
            return
        found, means = self._compiled_epochs([batches])
        self.readings.losses.append(torch.from_numpy(found))
        self.readings.weights += batches.totals()
        self.terms = self._terms(torch.from_numpy(means[-1]))
        self.advance(len(batches))
        if self.factor is not None:
            self._set_rate()
        yield

    def _epoch(self, monitor: Monitor) -> bool:
        """Where nobody looks at single epochs either, several of them."""
        run, settings = self.progress, self.settings
        if monitor.callbacks or monitor.watching or settings.tol is not None or run.step:
            return super()._epoch(monitor)
        first = self._batches_of(run.epoch)
        if first is None:
            return super()._epoch(monitor)
        start, known = time.perf_counter(), first.totals()
        epochs, many = [first], self._block()
        while sum(map(len, epochs)) < many and run.epoch + len(epochs) < settings.max_epochs:
            made = self._batches_of(run.epoch + len(epochs))
            assert made is not None  # of the same rows
            epochs.append(made)
        found, means = self._compiled_epochs(epochs)
        seconds, at = (time.perf_counter() - start) / len(found), 0
        for batches in epochs:
            totals = batches.totals() if batches.weights is not None else known
            self.advance(len(batches))
            run.examples += math.fsum(totals)
            self.history.seconds.append(seconds)
            at += len(batches)
            values = found[at - len(batches) : at].tolist()
            self.readings.keep(values, totals, torch.from_numpy(means[at - 1]))
            monitor.epoch(math.nan)
        if self.factor is not None:
            self._set_rate()
        return False

    def _batches_of(self, epoch: int) -> Batches | None:
        """What is left of an epoch, where it is compiled."""
        run, settings = self.progress, self.settings
        plain = self.compiles and settings.average is None and settings.accumulate == 1
        if not plain or self.feed.line is None:
            return None
        many = len(self._started()["x"])
        if not self._is_small(1, many):
            return None
        batches = self.feed._batches(self.problem.key.fold("epoch", epoch))
        batches = batches.from_batch(run.step if epoch == run.epoch else 0)
        return batches if self._is_small(max(batches.sizes, default=SMALL + 1), many) else None

    def _block(self) -> int:
        """Steps whose random numbers are drawn at once."""
        chains = self._started()
        return max(1, DRAWS // (chains["x"].numel() + chains["z"].numel()) // self.rule.source.k)

    def _compiled_epochs(self, epochs: list[Batches]) -> tuple[F64, F64]:
        """The steps of these epochs, the first of which may have begun; as of each step, their
        objectives ``(T,)`` and the mean free energies ``(T, 2)``."""
        run = self.progress
        if run.factor != self.applied:
            self._set_rate()
        rates = np.concatenate([
            self._rates((run.epoch + i) * self.per_epoch + (0 if i else run.step), len(batches))
            for i, batches in enumerate(epochs)
        ])  # fmt: skip
        sizes = [size for batches in epochs for size in batches.sizes]
        totals = [total for batches in epochs for total in batches.totals()]
        x = self.problem.resident["x"].index_select(0, torch.cat([b.rows for b in epochs]))
        weighted = any(batches.weights is not None for batches in epochs)
        weight = torch.cat([b.weights_or_ones() for b in epochs]) if weighted else None
        values, means = np.empty(len(sizes)), np.empty((len(sizes), 2))
        at, block = 0, self._block()
        for t in range(0, len(sizes), block):
            steps = slice(t, t + block)
            rows = slice(at, at + sum(sizes[steps]))
            w = None if weight is None else weight[rows]
            values[steps], means[steps] = self._compiled_steps(
                x[rows], w, sizes[steps], totals[steps], rates[steps]
            )
            at = rows.stop
        return values, means

    def _compiled_steps(
        self,
        x: Tensor,
        weight: Tensor | None,
        sizes: list[int],
        totals: list[float],
        rates: F64,
    ) -> tuple[F64, F64]:
        """The same steps, draw for draw, on consecutive batches of x; objectives ``(T,)`` and mean
        free energies ``(T, 2)``."""
        energy, chains = self.energy, self.rule.source.chains
        z, v = chains["z"], chains["x"]
        u = self._uniforms(z, v, len(sizes), self.rule.source.k)
        theta = (energy.W, energy.b, energy.c)
        grads = [torch.empty_like(p) if p.grad is None else p.grad for p in theta]
        values, means = pcd_steps(
            x.contiguous().numpy(),
            _NONE if weight is None else weight.double().numpy(),
            np.cumsum(sizes),
            np.array(totals),
            u.numpy(),
            z.numpy(),
            v.numpy(),
            *(p.detach().numpy() for p in theta),
            *(g.numpy() for g in grads),
            rates,
        )
        for p, g in zip(theta, grads):
            p.grad = g
        return values, means

    def _rates(self, first: int, many: int) -> F64:
        """Step sizes of the steps from number ``first`` of the run on."""
        if self.factor is None:
            return np.full(many, self.optimizer.param_groups[0]["lr"])
        base = self.bases[0] * self.progress.factor
        return np.array([base * self.factor(t) for t in range(first, first + many)])

    def _uniforms(self, z: Tensor, v: Tensor, *many: int) -> Tensor:
        """One number for each hidden bit of the chains, then for each visible one, ``(*many, n (l + d))``."""
        size = (*many, z.numel() + v.numel())
        if v.device.type != "cpu":
            return torch.rand(size, generator=self.generator, device=v.device, dtype=v.dtype)
        rows = math.prod(many)
        seeds = torch.randint(2**63 - 1, (rows,), generator=self.generator)
        out = torch.empty(size, dtype=v.dtype)
        fill_uniforms(seeds.numpy(), out.view(rows, -1).numpy())
        return out

    def _pair(self, z: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers in the shape of hidden and visible bits."""
        u = self._uniforms(z, v)
        return u[: z.numel()].view_as(z), u[z.numel() :].view_as(v)

    # --- statistics ----------------------------------------------------------------------

    def _moved(self, x: Tensor, share: Tensor, mass: float) -> tuple[Tensor, Tensor]:
        """k sweeps of the chains, then the gradients; the objective and the mean free energies."""
        energy, k = self.energy, self.rule.source.k
        W, b, c = (p.detach() for p in (energy.W, energy.b, energy.c))
        if self.persistent:
            chains = self._started()
            z, v = chains["z"], chains["x"]
        else:
            z, v = x.new_empty(len(x), len(c)), torch.empty_like(x)
        if self.tempered:
            v = self._exchanged(z, v)
        for step in range(0 if self.tempered else k):
            up, down = self._pair(z, v)
            if not self.persistent:
                torch.lt(up, affine(v if step else x, W, c).sigmoid_(), out=z)
            torch.lt(down, affine(z, W.T, b).sigmoid_(), out=v)
            if self.persistent and step + 1 < k:
                torch.lt(up, affine(v, W, c).sigmoid_(), out=z)
        rows = torch.cat([x, v])
        a = affine(rows, W, c)  # (B + n, l)
        sigma = torch.sigmoid(a)
        if self.persistent and not self.tempered:  # the hidden bits of the next step
            torch.lt(up, sigma[len(x) :], out=z)
        signed = torch.cat([-share, share.new_full((len(v),), mass / len(v))])
        return self._set(rows, sigma.mul_(signed[:, None]), signed, a, len(x))

    def _exchanged(self, z: Tensor, v: Tensor) -> Tensor:
        """k sweeps at every temperature, then changes of place; the visible bits at T = 1."""
        energy, source = self.energy, self.rule.source

        def fresh(n: int) -> State:
            place: dict[str, Any] = {"generator": self.generator, "device": v.device}
            return {m: energy.spaces[m].draw(n, dtype=v.dtype, **place) for m in ("z", "x")}

        hot = source.hot_start(fresh)
        states = [{"z": z, "x": v}]
        states += [{"z": hot["z"][r], "x": hot["x"][r]} for r in range(len(hot["z"]))]
        for T, state in zip(source.temperatures, states):
            for _ in range(source.k):
                up, down = self._pair(z, v)
                state["x"] = (down < torch.sigmoid(energy.down(state["z"]) / T)).to(v.dtype)
                state["z"] = (up < torch.sigmoid(energy.up(state["x"]) / T)).to(v.dtype)
        e = [energy(**state) for state in states]
        states = exchange(states, e, source.temperatures, self.generator)
        source.keep_hot(states[1:], len(z))
        source._keep(states[0])
        return states[0]["x"]

    def _set(
        self, rows: Tensor, sigma: Tensor, signed: Tensor, a: Tensor, data: int
    ) -> tuple[Tensor, Tensor]:
        energy = self.energy
        energy.W.grad = affine(rows.T, sigma)
        energy.b.grad = signed @ rows
        energy.c.grad = sigma.sum(0)
        free = (softplus(a).sum(1) + rows @ energy.b) * signed  # F of data, −F of negatives
        means = torch.stack([free[:data].sum(), -free[data:].sum()])
        return means[0] - means[1], means

    def _listed(self, x: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """All states of the smaller layer by their probabilities."""
        energy = self.energy
        d, l = energy.W.shape
        device, dtype = energy.placement()
        mass = share.sum()
        if d <= l:
            states = energy.spaces["x"].enumerate(device, dtype)
            log_p = energy.over_z(states)
            rows = torch.cat([x, states])
            signed = torch.cat([-share, mass * torch.softmax(log_p, 0)])
            a = energy.up(rows)
            sigma = torch.sigmoid(a).mul_(signed[:, None])
            _, means = self._set(rows, sigma, signed, a, len(x))
        else:
            z = energy.spaces["z"].enumerate(device, dtype)
            log_p = energy.over_x(z)
            weight = mass * torch.softmax(log_p, 0)
            a = energy.up(x)
            here = torch.sigmoid(a).mul_(share[:, None])
            there, seen = z * weight[:, None], torch.sigmoid(energy.down(z))
            energy.W.grad = torch.addmm(seen.T @ there, x.T, here, alpha=-1.0)
            energy.b.grad = weight @ seen - share @ x
            energy.c.grad = there.sum(0) - here.sum(0)
            free = -(softplus(a).sum(1) + x @ energy.b) @ share
            means = torch.stack([free, free])
        total = -torch.logsumexp(log_p, 0) * mass
        means = torch.stack([means[0], total])
        return means[0] - means[1], means

    def _terms(self, means: Tensor) -> Callable[[], Terms]:
        def terms() -> Terms:
            positive, contrast = means[:1], means[1:]
            return Terms(
                positive - contrast,
                lambda: (positive, contrast),
                exact=self.exact,
                is_objective=self.exact,
            )

        return terms
