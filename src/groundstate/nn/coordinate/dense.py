r"""Jets through plain tanh networks on the CPU, both passes written out.

Points stand in columns, so that a layer is one product of a small matrix with a wide one, in pieces
that stay in cache; what the gradient needs of a layer is kept once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.errors import NotApplicable
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.coordinate.net import CoordinateNet, Rescale

COLUMNS = 4096  # of one piece: streams times points
LARGEST = 2**26  # numbers of a workspace that is kept for the next pass


@dataclass(frozen=True)
class Dense:
    """A network of linear layers with tanh between them, behind a scaling of its inputs."""

    weights: list[Tensor]
    biases: list[Tensor]
    scale: Tensor | None
    shift: Tensor | None


def dense(net: nn.Module, x: Tensor) -> Dense:
    """The layers of a network that these passes take; ``NotApplicable`` for others."""
    if x.device.type != "cpu" or x.requires_grad or x.dtype not in (torch.float32, torch.float64):
        raise NotApplicable("the written passes are for points on the CPU without a gradient")
    parts = list(_flat(net))
    scale = shift = None
    if parts and isinstance(parts[0], Rescale):
        scale, shift = parts[0].scale, parts[0].shift
        parts = parts[1:]
    linear, between = parts[::2], parts[1::2]
    plain = (
        len(linear) == len(between) + 1
        and all(type(p) is nn.Linear and p.bias is not None for p in linear)
        and all(type(p) is nn.Tanh for p in between)
        and not any(p._forward_hooks or p._forward_pre_hooks or p._backward_hooks for p in parts)
    )
    if not plain or not between:
        raise NotApplicable("the written passes are for linear layers with tanh between them")
    weights = [p.weight for p in linear]
    if any(w.dtype != x.dtype or w.device != x.device for w in weights):
        raise NotApplicable("points and network differ in dtype or device")
    return Dense(weights, [p.bias for p in linear], scale, shift)


def _flat(net: nn.Module) -> Any:
    if type(net) in (CoordinateNet, MLP):
        net = net.layers  # type: ignore[assignment]
    if type(net) is nn.Sequential:
        for part in net:
            yield from _flat(part)
    else:
        yield net


def dense_jet(
    net: Dense, x: Tensor, first: list[int], pairs: tuple[tuple[int, int], ...]
) -> Tensor:
    """The jet ``(K, N, m)`` of a network at points x ``(N, d)``; pairs count streams from 1."""
    out: Tensor = _Passes.apply(net, x, first, pairs, *net.weights, *net.biases)
    return out.permute(1, 2, 0)


class _Passes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, net: Dense, x: Tensor, first: list[int], pairs: tuple[tuple[int, int], ...],
        *theta: Tensor,
    ) -> Tensor:  # fmt: skip
        from groundstate.nn.coordinate import dense_numba as steps

        weights = [w.detach() for w in net.weights]
        biases = [b.detach()[:, None] for b in net.biases]
        K, N, d = 1 + len(first) + len(pairs), len(x), x.shape[1]
        pieces = _pieces(N, K)
        widths = [len(w) for w in weights[:-1]]
        store = _taken(sum(widths) * K * N, x.dtype) if any(ctx.needs_input_grad[4:]) else None
        places = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        out = x.new_empty(len(weights[-1]), K, N)
        widest = max(*widths, d)
        room = [x.new_empty(widest * K * (pieces[0][1] - pieces[0][0])) for _ in range(2)]
        kept, at = [], 0
        for start, end in pieces:
            n = end - start
            h = room[0][: d * K * n].view(d, K, n)
            _start(h, net, x[start:end], first)
            layers = []
            for W, b in zip(weights[:-1], biases[:-1]):
                size = len(W) * K * n
                if store is None:
                    z = room[1][:size].view(len(W), K, n)
                else:
                    z = store[at : at + size].view(len(W), K, n)
                    at += size
                torch.mm(W, h.view(-1, K * n), out=z.view(len(W), K * n))
                value = z[:, 0]
                value.add_(b).tanh_()
                h = room[0][:size].view(len(W), K, n)
                steps.forward(z.numpy(), h.numpy(), places)
                layers.append(z)
            last = (weights[-1] @ h.view(-1, K * n)).view(-1, K, n)
            last[:, 0].add_(biases[-1])
            out[:, :, start:end] = last
            kept.append(layers)
        ctx.net, ctx.first, ctx.pieces, ctx.places = net, first, pieces, places
        ctx.kept, ctx.store = kept, store
        ctx.save_for_backward(x, *theta)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        from groundstate.nn.coordinate import dense_numba as steps

        (g,) = grads
        x, *theta = ctx.saved_tensors
        if ctx.kept is None:
            raise RuntimeError("the jet's graph was already used; compute the derivatives again")
        depth = len(theta) // 2
        weights = [w.detach() for w in theta[:depth]]
        d_weights = [torch.zeros_like(w) for w in weights]
        d_biases = [torch.zeros_like(b) for b in theta[depth:]]
        K = g.shape[1]
        widest = max(x.shape[1], *(max(w.shape) for w in weights))
        longest = ctx.pieces[0][1] - ctx.pieces[0][0]
        room = [x.new_empty(widest * K * longest) for _ in range(3)]
        for (start, end), layers in zip(ctx.pieces, ctx.kept):
            n = end - start
            turn = 0
            up = g[:, :, start:end].contiguous()
            for at in range(depth - 1, -1, -1):
                W = weights[at]
                flat = up.view(len(W), K * n)
                d_biases[at] += up[:, 0].sum(1)
                h = room[2][: W.shape[1] * K * n].view(W.shape[1], K, n)
                if at == 0:
                    _start(h, ctx.net, x[start:end], ctx.first)
                    d_weights[0].addmm_(flat, h.view(-1, K * n).T)
                    break
                down = room[turn][: W.shape[1] * K * n].view(W.shape[1], K, n)
                turn = 1 - turn
                torch.mm(W.T, flat, out=down.view(-1, K * n))
                steps.backward(layers[at - 1].numpy(), down.numpy(), h.numpy(), ctx.places)
                d_weights[at].addmm_(flat, h.view(-1, K * n).T)
                up = down
        ctx.kept = None
        _give_back(ctx.store)
        return None, None, None, None, *d_weights, *d_biases


def _start(h: Tensor, net: Dense, x: Tensor, first: list[int]) -> None:
    """The jet of the inputs themselves, behind their scaling."""
    h[:, 1:] = 0.0
    h[:, 0] = x.T if net.scale is None or net.shift is None else (x * net.scale + net.shift).T
    for at, i in enumerate(first, 1):
        h[i, at] = 1.0 if net.scale is None else net.scale[i]


def _pieces(N: int, K: int) -> list[tuple[int, int]]:
    size = max(64, COLUMNS // K)
    return [(at, min(at + size, N)) for at in range(0, N, size)]


_spare: dict[torch.dtype, Tensor] = {}  # fresh memory costs more than filling it


def _taken(size: int, dtype: torch.dtype) -> Tensor:
    held = _spare.pop(dtype, None)
    if held is not None and held.numel() >= size:
        return held
    return torch.empty(size, dtype=dtype)


def _give_back(store: Tensor | None) -> None:
    if store is not None and store.numel() <= LARGEST:
        _spare[store.dtype] = store
