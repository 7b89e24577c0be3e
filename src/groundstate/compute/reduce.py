r"""Sums over shards.

A solver computes a statistic of its own rows and calls ``reduce.sum``:

.. math:: S = \sum_{r=0}^{R-1} S_r .

Alone that is the identity; under ``torchrun`` (or any initialised ``torch.distributed``) it is one
all-reduce, so the same solver runs on one machine and on many.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor


class Reduce:
    """Alone: every reduction is the identity.

    Attributes
    ----------
    rank, world : int
        Which shard this process holds, of how many.

    Examples
    --------
    >>> import torch
    >>> reduce = Reduce()
    >>> reduce.world, reduce.sum(torch.ones(2)).tolist()
    (1, [1.0, 1.0])
    """

    rank: int = 0
    world: int = 1

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over ranks, elementwise; the argument is left as it is."""
        return tensor

    def max(self, tensor: Tensor) -> Tensor:
        """The maximum over ranks, elementwise."""
        return tensor

    def min(self, tensor: Tensor) -> Tensor:
        """The minimum over ranks, elementwise."""
        return tensor

    def mean(self, tensor: Tensor) -> Tensor:
        """The mean over ranks, elementwise (each rank counts the same)."""
        return self.sum(tensor) / self.world

    def weighted_mean(self, values: Tensor, weight: Tensor) -> float:
        r""":math:`\sum_i w_iv_i/\sum_i w_i` over the rows of all ranks."""
        return float(self.sum((weight * values).sum()) / self.sum(weight.sum()))

    def gather(self, tensor: Tensor) -> Tensor:
        """The ranks' tensors concatenated along their first axis; lengths may differ."""
        return tensor

    def broadcast(self, tensor: Tensor, source: int = 0) -> Tensor:
        """The tensor of rank ``source``, on every rank."""
        return tensor

    def sum_dict(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Sum a dict of tensors over ranks as one flat tensor per dtype and device."""
        return dict(tensors)

    def gather_plain(self, value: Any) -> list[Any]:
        """The value of each rank, where values are what JSON holds."""
        return [value]

    def counts(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Sum numbers that have names over ranks; a name may be missing on some.

        >>> Reduce().counts({"the": 2.0})
        {'the': 2.0}
        """
        found: dict[str, float] = {}
        for own in self.gather_plain(dict(counts)):
            for name, number in own.items():
                found[name] = found.get(name, 0.0) + number
        return found

    def union(self, values: NDArray[Any]) -> NDArray[Any]:
        """The distinct values of all ranks, sorted: numbers or texts.

        >>> Reduce().union(np.array(["b", "a", "b"])).tolist()
        ['a', 'b']
        """
        own: NDArray[Any] = np.unique(values)
        if self.world == 1:
            return own
        parts = [np.asarray(part) for part in self.gather_plain(own.tolist())]
        kept = own.dtype.kind in "iubfO"  # the width of texts is that of the longest
        return np.unique(np.concatenate([p.astype(own.dtype) if kept else p for p in parts]))


class Distributed(Reduce):
    """Reductions by ``torch.distributed`` over a process group."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.world = dist.get_world_size(group)

    def _all_reduce(self, tensor: Tensor, op: Any) -> Tensor:
        out = tensor.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(out, op=op, group=self.group)
        return out

    def sum(self, tensor: Tensor) -> Tensor:
        return self._all_reduce(tensor, dist.ReduceOp.SUM)

    def max(self, tensor: Tensor) -> Tensor:
        return self._all_reduce(tensor, dist.ReduceOp.MAX)

    def min(self, tensor: Tensor) -> Tensor:
        return self._all_reduce(tensor, dist.ReduceOp.MIN)

    def gather(self, tensor: Tensor) -> Tensor:
        own = torch.zeros(self.world, dtype=torch.int64, device=tensor.device)
        own[self.rank] = len(tensor)
        sizes: list[int] = self.sum(own).tolist()
        padded = tensor.new_zeros((max(sizes), *tensor.shape[1:]))
        padded[: len(tensor)] = tensor.detach()
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded, group=self.group)
        return torch.cat([part[:n] for part, n in zip(parts, sizes, strict=True)])

    def broadcast(self, tensor: Tensor, source: int = 0) -> Tensor:
        out = tensor.detach().clone(memory_format=torch.contiguous_format)
        dist.broadcast(out, group=self.group, group_src=source)
        return out

    def gather_plain(self, value: Any) -> list[Any]:
        own = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        sizes: list[int] = self.gather(torch.tensor([len(own)])).tolist()
        return [json.loads(bytes(part.tolist())) for part in self.gather(own).split(sizes)]

    def sum_dict(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        out = dict(tensors)
        kinds: dict[tuple[torch.dtype, torch.device], list[str]] = {}
        for name, tensor in tensors.items():
            kinds.setdefault((tensor.dtype, tensor.device), []).append(name)
        for names in kinds.values():
            flat = self.sum(torch.cat([tensors[name].reshape(-1) for name in names]))
            pieces = flat.split([tensors[name].numel() for name in names])
            for name, piece in zip(names, pieces, strict=True):
                out[name] = piece.view(tensors[name].shape)
        return out


def current() -> Reduce:
    """Reductions over the running process group, or the identity where there is none."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return Distributed()
    return Reduce()


class _Gathered(torch.autograd.Function):
    """All ranks' rows; the gradient of a row is the sum of what every rank found for it."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, first: int) -> Tensor:
        ctx.own = slice(first, first + len(tensor))
        return current().gather(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return current().sum(grad)[ctx.own], None


def gather_with_gradient(tensor: Tensor) -> tuple[Tensor, int]:
    """The ranks' rows one after the other, differentiable, and the place of the own first row.

    Each rank sums a loss of its own rows; gradients of the sum over ranks reach the rows of all of them,
    so that every rank must call it, and go backward through it, together.

    >>> import torch
    >>> gather_with_gradient(torch.ones(2, 1))
    (tensor([[1.],
            [1.]]), 0)
    """
    reduce = current()
    if reduce.world == 1:
        return tensor, 0
    own = torch.zeros(reduce.world, dtype=torch.int64, device=tensor.device)
    own[reduce.rank] = len(tensor)
    first = int(reduce.sum(own)[: reduce.rank].sum())
    found: Tensor = _Gathered.apply(tensor, first)
    return found, first


def run_local(fn: Callable[..., Any], world: int, *args: Any) -> list[Any]:
    """Call ``fn(rank, *args)`` in ``world`` local processes joined by gloo; give their results.

    ``fn`` must be importable (a function of a module) and its results of tensors and plain Python
    values. For tests and for trying a sharded solver on one machine.
    """
    from torch.multiprocessing.spawn import spawn

    with tempfile.TemporaryDirectory() as folder:
        spawn(_worker, args=(fn, world, folder, args), nprocs=world, join=True)
        return [torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(world)]


def _worker(rank: int, fn: Callable[..., Any], world: int, folder: str, args: Any) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", _loopback())
    torch.set_num_threads(1)
    where = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=world)
    try:
        torch.save(fn(rank, *args), Path(folder) / f"{rank}.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()


def _loopback() -> str:
    """The loopback interface: local processes need no other, and host names may not resolve."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), names[0] if names else "lo")
