r"""Steps of plain multilayer networks without a graph: forward and backward pass are written out.

A network of dense layers under cross-entropy, squared error or the logistic loss needs no automatic
differentiation. All that surrounds a step stays as it is: the optimiser and its state, penalties,
clipping, schedules, callbacks and checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import HOOKS, hooked_everywhere
from groundstate.compute.population.dense import Head, Layer, read_layers
from groundstate.energy.base import Energy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.energy.basic.squared import SquaredEnergy
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkClassEnergy, NetworkEnergy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import NLL, SoftMin
from groundstate.learn.train.dense_program import Program
from groundstate.nn.blocks.mlp import MLP

if TYPE_CHECKING:
    from groundstate.learn.train.run import Training


def written_head(energy: Energy, rule: Rule, data: Batch) -> Head | None:
    """The written-out loss that is this rule on this energy, None where there is none.

    The loss must be the rule's exactly, so kinds are compared, not looked up: a subclass may mean
    something else.

    >>> x, y = torch.zeros(2, 3), torch.tensor([0, 1])
    >>> written_head(NetworkClassEnergy(3, 2, nn.Linear(3, 1)), SoftMin(), {"x": x, "y": y})
    'logistic'
    """
    if (
        data.keys() != {"x", "y"}
        or rule.over not in (None, "y")
        or rule.contrasted(energy) != ("y",)
    ):
        return None
    x, y = data["x"], data["y"]
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.ndim != 2 or not len(x):
        return None
    likelihood = type(rule) in (SoftMin, NLL) and getattr(rule, "T", None) == 1.0
    if type(energy) in (NetworkClassEnergy, NetClassEnergy):
        known = y.dtype == torch.int64 and y.ndim == 1 and int(y.min()) >= 0
        if not (likelihood and known):
            return None
        return "logistic" if getattr(energy, "single", False) else "softmax"
    if not (y.dtype == x.dtype and y.ndim == 2):
        return None
    if type(energy) is SquaredEnergy:
        return "squared" if type(rule) is Naive and energy.net is not None else None
    if type(energy) is not NetworkEnergy:
        return None
    head = energy.head
    if type(head) is LocationHead and head.name == "squared_error" and type(rule) is Naive:
        return "squared"
    return "logistic" if head.name == "bernoulli" and energy.likelihood and likelihood else None


def written_layers(energy: Energy) -> tuple[Layer, ...] | None:
    """The dense layers of an energy's network, if that is nothing but layers one after the other."""
    net: Any = getattr(energy, "net", None)
    chain = net.layers if type(net) is MLP else net
    if type(chain) is nn.Linear:
        layers = read_layers(chain, "net.")
    elif type(chain) is nn.Sequential and _is_chain(chain):
        layers = read_layers(net, "net.")
    else:
        return None
    own = sum(1 for _ in energy.parameters())
    if layers is None or layers[-1].activation or layers[-1].dropout:
        return None
    return layers if own == sum(1 + (layer.bias is not None) for layer in layers) else None


def _is_chain(chain: nn.Sequential) -> bool:
    """Whether its modules are different ones, called in the order they are listed in."""
    leaves = list(_leaves(chain))
    return len({id(m) for m in leaves}) == len(leaves) and not any(
        any(m.children()) for m in leaves
    )


def _leaves(chain: nn.Sequential) -> Iterator[nn.Module]:
    for part in chain:
        if type(part) is nn.Sequential:
            yield from _leaves(part)
        else:
            yield part


class WrittenStep:
    r"""Loss and gradients of a batch, written to ``grad`` of the parameters.

    Parameters
    ----------
    energy, rule : what is learned and how
    layers, head : from `written_layers` and `written_head`
    """

    def __init__(self, energy: Energy, rule: Rule, layers: tuple[Layer, ...], head: Head) -> None:
        self.energy, self.rule, self.layers, self.head = energy, rule, layers, head
        self.named = list(energy.named_parameters())
        self._bind()

    def _bind(self) -> None:
        self.grads = {name: torch.zeros_like(p) for name, p in self.named}
        tensors = {**dict(self.named), **dict(self.energy.named_buffers())}
        self.program = Program(self.layers, tensors, self.grads, self.head)
        self.own = [(p, self.grads[name], p.data_ptr()) for name, p in self.named]

    def __call__(
        self, batch: Batch, weight: Tensor | None, total: float
    ) -> tuple[Tensor, Callable[[], Terms]]:
        """The objective of the batch; what ``rule.mean`` and a backward pass would give."""
        for p, _, at in self.own:
            if p.data_ptr() != at:  # somebody gave the parameter other memory
                self._bind()
                break
        loss = self.program(batch["x"], batch["y"], weight)
        for p, grad, _ in self.own:
            p.grad = grad
        return loss, lambda: self._terms(batch)

    @torch.no_grad()
    def _terms(self, batch: Batch) -> Terms:
        """What the rule says of a batch now, without dropout."""
        s, y = self.program.scores(batch["x"]), batch["y"]  # (K, B)
        if self.head == "softmax":
            own = -s.gather(0, y[None])[0]
            free = -s.logsumexp(0)
        elif y.ndim == 1:  # one output for two labels
            own, free = -s[0] * y, -nn.functional.softplus(s[0])
        else:
            each = s - y.T
            own = (
                0.5 * each.square_()
                if self.head == "squared"
                else nn.functional.softplus(s) - y.T * s
            )
            own = own.sum(0)
            free = torch.zeros_like(own)
        return Terms(own - free, lambda: (own, free))

    def plain(self) -> bool:
        """Whether all modules learn and nobody listens to them or to the gradients."""
        return untouched(self.energy)


def untouched(energy: Energy, learning: bool = True) -> bool:
    """Whether all modules are in that mode and nobody listens to them or to the gradients."""
    if hooked_everywhere():
        return False
    waiting: list[nn.Module] = [energy]
    while waiting:  # torch's own walk names every module and takes several times as long
        own = waiting.pop().__dict__
        if "forward" in own or own["training"] is not learning or any(own[n] for n in HOOKS):
            return False
        for p in own["_parameters"].values():
            if p is not None and (
                not p.requires_grad or p._backward_hooks or p._post_accumulate_grad_hooks
            ):
                return False
        waiting += [module for module in own["_modules"].values() if module is not None]
    return True


def written_step(training: Training) -> WrittenStep | None:
    """The written-out step of a run, None where its steps need automatic differentiation."""
    settings, problem = training.settings, training.problem
    energy, rule = training.energy, training.rule
    simple = (
        training.device.type == "cpu"
        and training.plain
        and settings.accumulate == 1
        and problem.is_resident
        and not training.feed.sharded
        and not training.turns
        and not training.omega.gradient
        and not any(True for _ in rule.parameters())
    )
    if not simple:
        return None
    layers, head = written_layers(energy), written_head(energy, rule, problem.resident)
    if layers is None or head is None:
        return None
    x = problem.resident["x"]
    fits = all(p.dtype == x.dtype and p.is_contiguous() for p in energy.parameters())
    if not fits or x.dtype not in (torch.float32, torch.float64):
        return None
    return WrittenStep(energy, rule, layers, head)
