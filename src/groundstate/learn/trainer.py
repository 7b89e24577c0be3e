r"""The stochastic solver: the one training loop of the library."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.learn.base import Batch, History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.feed import Feed
from groundstate.registry import solvers

Optimizer = Callable[[Sequence[Tensor], float], torch.optim.Optimizer]


def adam(parameters: Sequence[Tensor], lr: float) -> torch.optim.Optimizer:
    """Adam in its fused form, which exists on the CPU and on GPUs."""
    return torch.optim.Adam(parameters, lr=lr, fused=True)


def sgd(parameters: Sequence[Tensor], lr: float) -> torch.optim.Optimizer:
    """Plain stochastic gradient descent."""
    return torch.optim.SGD(parameters, lr=lr, fused=True)


@solvers.register(
    formula=r"\theta \leftarrow \theta - \eta\,\mathrm{opt}(\nabla J_{\text{batch}})",
    make=lambda energy: Stochastic(),
)
@dataclass(frozen=True)
class Stochastic:
    r"""Lower :math:`J(\theta)` by steps on mini-batches, :math:`\theta \leftarrow \theta - \eta\,
    \mathrm{opt}(\nabla J_{\text{batch}})`.

    Mini-batches are cuts of the weight line, so weights are repetitions and the order of the rows
    does not matter. It runs for every energy and rule; a run can be stopped anywhere and resumed
    to the same bits (``Checkpoint``).

    Parameters
    ----------
    optimizer : ``(parameters, lr) -> torch.optim.Optimizer``
    lr : learning rate
    batch_size : rows (units of weight) of a step; None takes all rows
    max_epochs : passes over the data at most
    tol : stop when the epoch's objective has not improved by ``tol * max(1, |best|)`` ...
    patience : ... for this many epochs; ``tol=None`` never stops early
    schedule : factor on ``lr`` as a function of the finished fraction of the run
    clip : largest norm of a gradient
    average : replace θ at the end by its mean over the last fraction of the epochs
    """

    optimizer: Optimizer = adam
    lr: float = 1e-3
    batch_size: int | None = 256
    max_epochs: int = 100
    tol: float | None = 1e-4
    patience: int = 5
    schedule: Callable[[float], float] | None = None
    clip: float | None = None
    average: float | None = None

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1 or None, got {self.batch_size}")
        if not self.lr > 0:
            raise ValueError(f"lr must be positive, got {self.lr}")
        if self.max_epochs < 1:
            raise ValueError(f"max_epochs must be at least 1, got {self.max_epochs}")
        if self.average is not None and not 0 < self.average <= 1:
            raise ValueError(f"average must be in (0, 1] or None, got {self.average}")

    def reason_against(self, problem: Problem) -> str | None:
        for part in (problem.energy, problem.rule):
            if any(p.requires_grad for p in part.parameters()):
                return None
        return f"{type(problem.energy).__name__} has no parameters to learn"

    def run(self, problem: Problem) -> History:
        return _Training(self, problem).run()


class _Training:
    """One run of ``Stochastic``: what changes while it goes on."""

    def __init__(self, settings: Stochastic, problem: Problem) -> None:
        self.settings = settings
        self.problem = problem
        self.energy, self.rule = problem.energy, problem.rule
        self.device = self.energy.placement()[0]
        self.generator = problem.key.fold("noise").torch(self.device)
        self.feed = Feed(problem, settings.batch_size)
        self.penalty = problem.penalty
        own: list[Tensor] = [p for p in self.rule.parameters() if p.requires_grad]
        self.inner: Callable[..., Tensor | None] | None = getattr(self.rule, "inner", None)
        self.theta: list[Tensor] = [p for p in self.energy.parameters() if p.requires_grad]
        joint = self.theta if self.inner is not None else self.theta + own
        self.optimizer = settings.optimizer(joint, settings.lr)
        self.rule_optimizer = (
            settings.optimizer(own, settings.lr) if self.inner is not None and own else None
        )
        self.history = History(solver="Stochastic")
        self.losses: list[Tensor] = []  # of the current epoch, on the device
        self.weights: list[float] = []
        self.best, self.stale = math.inf, 0
        self.mean: list[Tensor] = []
        self.averaged = 0

    def run(self) -> History:
        settings, history = self.settings, self.history
        run = Run(
            self.problem, history, settings.max_epochs, state=self.state, restore=self.restore
        )
        self.progress = run
        was_training = self.energy.training
        self.energy.train()
        self.rule.train()
        with Monitor(self.problem.callbacks, run) as monitor:
            stop = False
            while run.epoch < settings.max_epochs and not stop:
                stop = self._epoch(monitor)
        if self.averaged:
            with torch.no_grad():
                for p, mean in zip(self.theta, self.mean, strict=True):
                    p.copy_(mean)
        self.energy.train(was_training)
        history.stop = history.stop or "max_epochs"
        return history

    def _epoch(self, monitor: Monitor) -> bool:
        run, settings = self.progress, self.settings
        start = time.perf_counter()
        terms: Any = None
        began = run.step
        key = self.problem.key.fold("epoch", run.epoch)
        with self.feed.epoch(key, skip=run.step) as batches:
            for batch, weight, total in batches:
                terms = self._step(batch, weight, total)
                run.step += 1
                run.total_steps += 1
                if monitor.steppers and monitor.step():
                    self.history.stop = "callback"
                    break
        steps = max(1, run.step - began)
        objective = self._close_epoch(terms, (time.perf_counter() - start) / steps)
        # an epoch cut short is not an epoch: a checkpoint must not take it for a finished one
        if self.history.stop or monitor.epoch(objective):
            return True
        if settings.tol is None or not self.rule.is_objective:
            return False
        enough = settings.tol * max(1.0, abs(objective))
        self.stale = 0 if objective < self.best - enough else self.stale + 1
        self.best = min(self.best, objective)
        if self.stale >= settings.patience:
            self.history.converged = True
            self.history.stop = f"objective changed by less than tol={settings.tol}"
            return True
        return False

    def _step(self, batch: Batch, weight: Tensor | None, total: float) -> Any:
        settings = self.settings
        if settings.schedule is not None:
            self._set_rate()
        objective, terms = self.rule.mean(self.energy, batch, weight, total, self.generator)
        if self.penalty is not None:
            objective = objective + self.penalty(self.energy) / self.feed.total_weight
        self.optimizer.zero_grad(set_to_none=True)
        objective.backward()
        if self.feed.sharded:
            self._reduce_gradients()
        if settings.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.theta, settings.clip)
        self.optimizer.step()
        if self.inner is not None:
            self._inner_step(batch)
        if settings.average is not None:
            self._accumulate()
        self.losses.append(objective.detach())
        self.weights.append(total)
        return terms

    def _inner_step(self, batch: Batch) -> None:
        assert self.inner is not None
        loss = self.inner(self.energy, batch, generator=self.generator)
        if loss is None or self.rule_optimizer is None:
            return
        self.rule_optimizer.zero_grad(set_to_none=True)
        loss.backward(inputs=[p for p in self.rule.parameters() if p.requires_grad])
        self.rule_optimizer.step()

    def _reduce_gradients(self) -> None:
        grads = [p.grad for p in self.theta if p.grad is not None]
        flat = current().sum(torch.cat([g.reshape(-1) for g in grads]))
        at = 0
        for g in grads:
            g.copy_(flat[at : at + g.numel()].view_as(g))
            at += g.numel()

    def _set_rate(self) -> None:
        run, settings = self.progress, self.settings
        assert settings.schedule is not None
        done = (run.epoch + run.step / max(1, self.feed.steps)) / settings.max_epochs
        for group in self.optimizer.param_groups:
            group["lr"] = settings.lr * settings.schedule(done)

    def _accumulate(self) -> None:
        assert self.settings.average is not None
        run = self.progress
        if run.epoch < (1 - self.settings.average) * self.settings.max_epochs:
            return
        values = [p.detach() for p in self.theta]
        self.averaged += 1
        if not self.mean:
            self.mean = [v.clone() for v in values]
        else:
            torch._foreach_lerp_(self.mean, values, 1 / self.averaged)

    def _close_epoch(self, terms: Any, seconds: float) -> float:
        """Bring the epoch's numbers to the host: the only synchronisation of an epoch."""
        history = self.history
        losses: list[float] = torch.stack(self.losses).tolist()
        weights, self.losses, self.weights = self.weights, [], []
        bad = next((i for i, v in enumerate(losses) if not math.isfinite(v)), None)
        if bad is not None:
            raise FloatingPointError(
                f"the loss became {losses[bad]} in step {bad} of epoch {self.progress.epoch}; "
                f"lower lr={self.settings.lr}, set clip=1.0, or scale the inputs"
            )
        history.objective += losses
        history.seconds.append(seconds)
        if terms is not None:
            last = terms()
            history.positive.append(float(last.positive.detach().mean()))
            history.contrast.append(float(last.contrast.detach().mean()))
        return math.fsum(v * w for v, w in zip(losses, weights, strict=True)) / math.fsum(weights)

    # --- exact resume --------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything needed to go on to the same bits."""
        run, history = self.progress, self.history
        return {
            "energy": self.energy.state_dict(),
            "rule": self.rule.state_dict(),
            "optimizer": _packed(self.optimizer),
            "rule_optimizer": _packed(self.rule_optimizer) if self.rule_optimizer else None,
            "generator": self.generator.get_state(),
            "place": [run.epoch, run.step, run.total_steps],
            "losses": torch.stack(self.losses) if self.losses else None,
            "weights": self.weights,
            "plateau": [self.best, self.stale],
            "mean": self.mean,
            "averaged": self.averaged,
            "history": [history.objective, history.positive, history.contrast, history.seconds],
            "extra": history.extra,
        }

    def restore(self, state: dict[str, Any]) -> None:
        run, history = self.progress, self.history
        self.energy.load_state_dict(state["energy"])
        self.rule.load_state_dict(state["rule"])
        _unpack(self.optimizer, state["optimizer"])
        if self.rule_optimizer is not None:
            _unpack(self.rule_optimizer, state["rule_optimizer"])
        self.generator.set_state(state["generator"].cpu())
        run.epoch, run.step, run.total_steps = state["place"]
        losses = state["losses"]
        self.losses = [] if losses is None else list(losses.to(self.device).unbind())
        self.weights = list(state["weights"])
        self.best, self.stale = state["plateau"]
        self.mean = [m.to(self.device) for m in state["mean"]]
        self.averaged = state["averaged"]
        history.objective, history.positive, history.contrast, history.seconds = map(
            list, state["history"]
        )
        history.extra = dict(state["extra"])
        history.n_iter = run.epoch


def _packed(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    state = optimizer.state_dict()
    return {
        "state": {str(k): v for k, v in state["state"].items()},
        "groups": [{k: v for k, v in g.items() if k != "params"} for g in state["param_groups"]],
    }


def _unpack(optimizer: torch.optim.Optimizer, packed: dict[str, Any]) -> None:
    current_groups = optimizer.state_dict()["param_groups"]
    groups = [
        {**saved, "params": group["params"]}
        for saved, group in zip(packed["groups"], current_groups, strict=True)
    ]
    states = {int(k): v for k, v in packed["state"].items()}
    optimizer.load_state_dict({"state": states, "param_groups": groups})


__all__ = ["Optimizer", "Stochastic", "adam", "sgd"]
