r"""Alternating targets: every layer is asked to reach what would lower the loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.reduce import current
from groundstate.learn.base import Batch, History, Problem, weighted_mean
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.train.feed import Feed
from groundstate.registry import solvers

Layers = Callable[[nn.Module], Sequence[nn.Module]]


def hidden_layers(module: nn.Module) -> list[nn.Module]:
    """The hidden layers of the first ``nn.Sequential``: each a parametrised block with what follows.

    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> [len(layer) for layer in hidden_layers(net)]
    [2]
    """
    stack = next((m for m in module.modules() if isinstance(m, nn.Sequential)), None)
    if stack is None:
        return []
    groups: list[list[nn.Module]] = []
    for block in stack:
        if any(True for _ in block.parameters()) or not groups:
            groups.append([])
        groups[-1].append(block)
    return [nn.Sequential(*group) for group in groups[:-1]]  # the last one is the top


@solvers.register(
    formula=r"\hat h = h - \eta\nabla_h L,\quad (U, c) \leftarrow \arg\min\tfrac12\|h - \hat h\|^2",
    make=lambda energy: AlternatingTargets(),
)
@dataclass(frozen=True)
class AlternatingTargets:
    r"""Learn a layered network by targets: (1) :math:`\hat h = h - \eta\nabla_h L` for every hidden
    layer, (2) ``inner_steps`` gradient steps of each layer on its own energy
    :math:`\tfrac12\|h - \hat h\|^2`, then again.

    The top, everything that is no hidden layer, takes one gradient step on the loss in (2). With
    ``step=1`` and ``inner_steps=1`` this is stochastic gradient descent, because the gradient of a
    layer's energy is then :math:`(\partial h/\partial U)\,\nabla_h L`. With more steps the true loss
    may rise on the way, since every layer is fitted as if the others stood still; if all targets
    are reached exactly and η is small, it falls.

    Parameters
    ----------
    step : η
    inner_steps : gradient steps of each layer towards its target
    lr : rate of those steps
    batch_size, max_epochs : as in ``Stochastic``
    layers : gives the hidden layers of an energy, from input to top, each called once per row
        batch; None takes those of its first ``nn.Sequential``
    record : also record the true loss after every inner step, in ``History.extra["inner"]``

    Examples
    --------
    >>> from groundstate.energy import NetClassEnergy
    >>> from groundstate.learn import SoftMin, fit
    >>> x = torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
    >>> solver = AlternatingTargets(lr=0.5, max_epochs=50)
    >>> history = fit(NetClassEnergy(2, 2), {"x": x, "y": torch.tensor([0, 1])}, SoftMin(), solver)
    >>> history.objective[-1] < 0.1 * history.objective[0]
    True
    """

    step: float = 1.0
    inner_steps: int = 1
    lr: float = 1e-2
    batch_size: int | None = 256
    max_epochs: int = 100
    layers: Layers | None = None
    record: bool = False

    def __post_init__(self) -> None:
        if not self.step > 0 or not self.lr > 0:
            raise ValueError(f"step and lr must be positive, got step={self.step}, lr={self.lr}")
        if self.inner_steps < 1:
            raise ValueError(f"inner_steps must be at least 1, got {self.inner_steps}")

    def reason_against(self, problem: Problem) -> str | None:
        if not self._layers(problem):
            return f"{type(problem.energy).__name__} has no hidden layers; name them with layers="
        if problem.penalty is not None:
            return "targets know no penalty on θ; use Stochastic"
        if current().world > 1:
            return "it runs in one process"
        if not problem.rule.is_objective:
            return f"{type(problem.rule).__name__} gives a gradient but no loss to lower"
        return None

    def _layers(self, problem: Problem) -> list[nn.Module]:
        return list((self.layers or hidden_layers)(problem.energy))

    def run(self, problem: Problem) -> History:
        history = History(solver="AlternatingTargets")
        run = Run(problem, history, self.max_epochs)
        work = _Work(self, problem, self._layers(problem), history)
        feed = Feed(problem, self.batch_size)
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_epochs:
                start, losses, weights = time.perf_counter(), [], []
                for batch, weight, total in feed.epoch(run.epoch):
                    losses.append(work.step(batch, weight))
                    weights.append(total)
                    run.step += 1
                    run.total_steps += 1
                    if monitor.steppers and monitor.step():
                        history.stop = "callback"
                        break
                values = torch.stack(losses).double()
                history.objective += values.tolist()
                history.seconds.append((time.perf_counter() - start) / len(losses))
                w = torch.tensor(weights, dtype=torch.float64, device=values.device)
                if history.stop or monitor.epoch(float((values @ w) / w.sum())):
                    break
        history.stop = history.stop or "max_epochs"
        return history


@dataclass
class _Work:
    """One run: the layers with what they saw in the last forward pass."""

    settings: AlternatingTargets
    problem: Problem
    hidden: list[nn.Module]
    history: History
    seen: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # input, output of each layer

    def __post_init__(self) -> None:
        own = {id(p) for layer in self.hidden for p in layer.parameters()}
        self.generator = self.problem.key.fold("noise").torch(self.problem.energy.placement()[0])
        self.top = [
            p for p in self.problem.energy.parameters() if p.requires_grad and id(p) not in own
        ]

    def step(self, batch: Batch, weight: Tensor | None) -> Tensor:
        """Set targets, then let every layer and the top move; the loss before."""
        settings = self.settings
        rows, loss = self._forward(batch, weight)
        outputs = [h for _, h in self.seen]
        # rows are independent, so the gradient of their sum is each row's own
        slopes = torch.autograd.grad(rows.sum(), outputs, retain_graph=True)
        tops = torch.autograd.grad(loss, self.top, allow_unused=True) if self.top else ()
        targets = [(h - settings.step * g).detach() for h, g in zip(outputs, slopes, strict=True)]
        inputs = [x.detach() for x, _ in self.seen]
        self._descend(self.top, tops)
        for _ in range(settings.inner_steps):
            for layer, x, target in zip(self.hidden, inputs, targets, strict=True):
                gap = (layer(x) - target).reshape(len(x), -1)
                reach = weighted_mean(0.5 * gap.square().sum(1), weight)
                parameters = [p for p in layer.parameters() if p.requires_grad]
                self._descend(parameters, torch.autograd.grad(reach, parameters))
            if settings.record:
                with torch.no_grad():
                    now = self._forward(batch, weight)[1]
                self.history.extra.setdefault("inner", []).append(float(now))
        return loss.detach()

    def _forward(self, batch: Batch, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        """Loss of every row and their mean; inputs and outputs of the hidden layers are kept."""
        self.seen = []
        hooks = [self._watch(layer) for layer in self.hidden]
        try:
            rows = self.problem.rule(self.problem.energy, batch, generator=self.generator).loss
        finally:
            for pair in hooks:
                for hook in pair:
                    hook.remove()
        return rows, weighted_mean(rows, weight)

    def _watch(self, layer: nn.Module) -> tuple[Any, Any]:
        first, last = layer, layer
        while isinstance(first, nn.Sequential):
            first = first[0]
        while isinstance(last, nn.Sequential):
            last = last[-1]
        inputs: list[Tensor] = []

        def before(module: nn.Module, args: tuple[Tensor, ...]) -> None:
            inputs.append(args[0])

        def after(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
            self.seen.append((inputs[-1], output))

        return first.register_forward_pre_hook(before), last.register_forward_hook(after)

    @torch.no_grad()
    def _descend(self, parameters: Sequence[Tensor], slopes: Sequence[Tensor | None]) -> None:
        for p, g in zip(parameters, slopes, strict=True):
            if g is not None:
                p.add_(g, alpha=-self.settings.lr)
