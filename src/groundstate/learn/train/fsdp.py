r"""Networks whose optimiser state does not fit on one device: every process keeps a part of θ.

Each layer is gathered for its forward and backward pass and released again, gradients are summed
straight into the parts, and the optimiser's moments exist as parts only
(``torch.distributed.fsdp.fully_shard``). The energy that the caller handed over is whole again
between epochs, for callbacks and checkpoints, and rests in host memory while steps are made.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.learn.base import Rule


class FullyShared:
    """A copy of an energy whose networks are spread over the processes.

    Parameters
    ----------
    energy : the whole, which gets θ back by ``gather``
    rule : must have no parameters of its own

    Attributes
    ----------
    work : the energy that is trained
    """

    def __init__(self, energy: Energy, rule: Rule) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, fully_shard

        loose = [name for name, _ in energy.named_parameters(recurse=False)]
        loose += [name for name, _ in rule.named_parameters()]
        if loose:
            raise Unsupported(
                f"shard='fsdp' spreads the networks inside an energy, but {', '.join(loose)} of "
                f"{type(energy).__name__} and {type(rule).__name__} belong to none; leave shard out"
            )
        self.whole, self.work = energy, deepcopy(energy)
        device = energy.placement()[0]
        mesh = init_device_mesh(device.type, (current().world,))
        owners = Counter(
            id(p) for block in self.work.modules() for p in block.parameters(recurse=False)
        )
        for child in self.work.children():
            for block in child.modules():
                own = list(block.parameters(recurse=False))
                # a tensor that several layers share stays one in the group of the whole network
                if block is not child and own and all(owners[id(p)] == 1 for p in own):
                    fully_shard(block, mesh=mesh)
            if any(True for _ in child.parameters()):
                fully_shard(child, mesh=mesh)
        for module in self.work.modules():
            if isinstance(module, FSDPModule):
                module.set_gradient_divide_factor(1.0)  # sums: weights have been divided by already

        self.rests: list[Tensor] | None = None

    @torch.no_grad()
    def gather(self) -> None:
        """Bring θ and the buffers into the whole energy, on every process."""
        self.wake()
        for mine, whole in self._both():
            whole.copy_(full(mine))

    @torch.no_grad()
    def scatter(self) -> None:
        """Take θ and the buffers from the whole energy."""
        self.wake()
        for mine, whole in self._both():
            mine.copy_(part_like(whole, mine))

    @torch.no_grad()
    def sleep(self) -> None:
        """Move the whole energy to host memory: while steps are made the device holds parts alone."""
        if self.rests is None:
            tensors = [whole for _, whole in self._both()]
            self.rests = [t.detach().cpu() for t in tensors]
            for t in tensors:
                t.data = t.data.new_empty(0)

    @torch.no_grad()
    def wake(self) -> None:
        """The whole energy back on its device, as it last was; needs no other process."""
        if self.rests is not None:
            for (_, whole), kept in zip(self._both(), self.rests, strict=True):
                whole.data = kept.to(whole.device)
            self.rests = None

    def _both(self) -> Any:
        mine = [*self.work.parameters(), *self.work.buffers()]
        return zip(mine, [*self.whole.parameters(), *self.whole.buffers()], strict=True)


def full(tensor: Any) -> Any:
    """A spread tensor as a whole one; others as they are."""
    gathered = getattr(tensor, "full_tensor", None)
    return tensor if gathered is None else gathered()


def local(tensor: Any) -> Any:
    """The own part of a spread tensor, sharing its memory; others as they are."""
    own = getattr(tensor, "to_local", None)
    return tensor if own is None else own()


def part_like(whole: Tensor, like: Tensor) -> Tensor:
    """The whole tensor spread as another one."""
    if not hasattr(like, "full_tensor"):
        return whole
    from torch.distributed.tensor import distribute_tensor

    spread: Any = like
    result: Tensor = distribute_tensor(whole.detach(), spread.device_mesh, spread.placements)
    return result


def spread_state(optimizer: torch.optim.Optimizer) -> None:
    """Spread whole moments, as a checkpoint holds them, like the parameters they belong to."""
    for p, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.shape == p.shape and value.ndim:
                state[name] = part_like(full(value), p)


def unfuse(optimizer: torch.optim.Optimizer) -> None:
    """Steps by lists of tensors where the fused kernel does not know spread ones."""
    if isinstance(optimizer, torch.optim.SGD):
        for group in optimizer.param_groups:
            group["fused"], group["foreach"] = False, True
