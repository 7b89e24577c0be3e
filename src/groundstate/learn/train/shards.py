r"""One run over several processes: :math:`g = \sum_r \sum_{i \in r} w_i g_i / \sum_i w_i`.

Every process computes the sum over its own rows, divided by the weight of the whole batch; what
remains is one sum over processes. Alone every method is the identity.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from groundstate.compute.reduce import current


class Shards:
    """The sums, decisions and buffers that processes share.

    Attributes
    ----------
    world, rank : how many processes, and which one this is
    """

    def __init__(self) -> None:
        self._reduce = current()
        self.world, self.rank = self._reduce.world, self._reduce.rank

    def gradients(self, parameters: Sequence[Tensor]) -> None:
        """Sum the gradients over processes in one transfer; one that some processes miss counts as
        zero there, one that all miss stays missing."""
        if not parameters:
            return
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        there = grads[0].new_tensor([float(p.grad is not None) for p in parameters])
        flat = self._reduce.sum(torch.cat([*(g.reshape(-1) for g in grads), there]))
        *pieces, there = flat.split([*(g.numel() for g in grads), len(grads)])
        for p, g, piece, known in zip(parameters, grads, pieces, there.tolist(), strict=True):
            p.grad = g.copy_(piece.view_as(g)) if known else None

    def values(self, parts: Tensor) -> Tensor:
        """Sum over processes of what each one recorded."""
        return self._reduce.sum(parts)

    def agree(self, decision: bool, device: torch.device) -> bool:
        """The decision of process 0: what one process sees may differ, what they do may not."""
        if self.world == 1:
            return decision
        flag = torch.tensor([float(decision)], device=device)
        return bool(self._reduce.broadcast(flag)[0] > 0)

    def buffers(self, module: nn.Module) -> None:
        """Running statistics of process 0, everywhere; those of local batches differ."""
        if self.world == 1:
            return
        for buffer in module.buffers():
            buffer.copy_(self._reduce.broadcast(buffer))
