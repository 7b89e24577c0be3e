r"""One multilayer network with its two passes written out, in memory that is made once.

.. math:: Z_j = W_j A_{j-1} + b_j, \qquad \nabla W_j = \Delta_j A_{j-1}^\top, \qquad
    \Delta_{j-1} = (W_j^\top\Delta_j)\odot\sigma',

with activations (H, B) as in ``compute.dense``, which does the same for a whole population; for one
small network most of a step is the way from call to call, so here every view is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.population.dense import BACKWARD, FORWARD, KEEPS_INPUT, Head, Layer

_SMALL = 2**17  # entries below which one thread is quicker than several
_SIZES = 8  # sizes of batches whose memory is kept


class Program:
    r"""Loss and gradients of a plain multilayer network on a CPU.

    Parameters
    ----------
    layers : from ``compute.dense.read_layers``; the last is linear, without dropout
    params : the parameters by name, and the buffers of dropout; read, never copied
    grads : where the gradients go, by the same names
    head : "softmax", "squared" or "logistic"
        :math:`-\log\mathrm{softmax}(s)_y`, :math:`\tfrac12|s-y|^2`,
        :math:`\sum_m \log(1+e^{s_m}) - y_m s_m`.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        params: Mapping[str, Tensor],
        grads: Mapping[str, Tensor],
        head: Head,
    ) -> None:
        from groundstate.compute.population import dense_numba as kernels

        self.layers, self.labels = tuple(layers), head == "softmax"
        self.head = kernels.HEADS[head][0]
        self.weights = [params[layer.weight].detach() for layer in layers]  # (out, in)
        self.turned = [w.T for w in self.weights]
        self.biases = [None if la.bias is None else params[la.bias].detach() for la in layers]
        self.slopes = [grads[layer.weight] for layer in layers]
        self.sums = [None if la.bias is None else grads[la.bias] for la in layers]
        self.drops = [
            None if la.dropout is None
            else tuple(params[la.dropout + name] for name in ("stream", "count", "cut"))
            for la in layers
        ]  # fmt: skip
        self.dtype = self.weights[0].dtype
        self._work: dict[tuple[int, bool], _Work] = {}

    @torch.no_grad()
    def __call__(self, x: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Write the gradients of the weighted mean loss and return it.

        Parameters
        ----------
        x : Tensor, (B, d)
        y : Tensor, (B,) labels or (B, m) values
        weight : Tensor, (B,), or None
        """
        rows = len(x)
        work = self._at(rows)
        a = x.T  # (d, B)
        for i, w in enumerate(self.weights):
            a = torch.mm(w, a, out=work.values[i])
            for after in work.forward[i]:
                a = after(a)
        if weight is None:
            share = work.share
        else:
            share = (weight / weight.sum().clamp_min(work.tiny)).numpy()[None]
        loss = torch.empty((), dtype=self.dtype)
        y = (y if self.labels else y.to(self.dtype)).contiguous()
        target = y.numpy()[None] if self.labels else y.numpy().reshape(1, rows, -1)
        self.head(work.scores, target, share, loss.numpy().reshape(1))
        delta = work.values[-1]
        for i in range(len(self.layers) - 1, -1, -1):
            for before in work.backward[i]:
                before(delta)
            torch.mm(delta, x if i == 0 else work.fed[i - 1].T, out=self.slopes[i])
            if i:
                delta = torch.mm(self.turned[i], delta, out=work.deltas[i - 1])
        return loss

    @torch.no_grad()
    def scores(self, x: Tensor) -> Tensor:
        """The outputs without dropout, (K, B); good until the next call."""
        work, a = self._at(len(x)), x.T
        for i, w in enumerate(self.weights):
            a = torch.mm(w, a, out=work.values[i])
            for after in work.forward[i][: work.kinds[i]]:
                a = after(a)
        return a

    def _at(self, rows: int) -> _Work:
        many = torch.get_num_threads() > 1
        work = self._work.get((rows, many))
        if work is None:
            if len(self._work) >= _SIZES:
                self._work.clear()
            work = self._work[rows, many] = _Work(self, rows, many)
        return work


class _Work:
    """The memory of one size of batch, and what follows each product, bound to it."""

    def __init__(self, of: Program, rows: int, threads: bool) -> None:
        new = of.weights[0].new_empty
        widths = [len(w) for w in of.weights]
        self.values = [new(h, rows) for h in widths]  # Z, which most activations overwrite
        self.deltas = [new(h, rows) for h in widths[:-1]]
        self.outputs = [
            new(h, rows) if la.activation in KEEPS_INPUT else z
            for h, la, z in zip(widths, of.layers, self.values, strict=True)
        ]
        self.masks = [None if own is None else new(len(z), rows)
                      for own, z in zip(of.drops, self.values, strict=True)]  # fmt: skip
        self.fed = [z if m is None else new(len(z), rows)
                    for z, m in zip(self.outputs, self.masks, strict=True)]  # fmt: skip
        self.share = of.weights[0].new_full((1, rows), 1.0 / rows).numpy()
        self.tiny = torch.finfo(of.dtype).tiny
        self.scores = self.values[-1].numpy()[None]  # (1, K, B)
        self.kinds: list[int] = []  # how many of the next do not drop
        self.forward: list[list[Any]] = []
        self.backward: list[list[Any]] = []
        for i, mask in enumerate(self.masks):
            after, before = self._forward(of, i, threads), self._backward(of, i, threads)
            drop = [] if mask is None else [self._drop(of, i)]
            undo = [] if mask is None else [partial(_times, mask)]
            self.kinds.append(after is not None)
            self.forward.append([*([] if after is None else [after]), *drop])
            self.backward.append([*undo, before])

    def _drop(self, of: Program, i: int) -> Any:
        from groundstate.compute.population.dense_numba import MASKS

        own, mask, out = of.drops[i], self.masks[i], self.fed[i]
        assert own is not None and mask is not None
        stream, count, cut = (t.numpy().reshape(1) for t in own)
        run, memory = MASKS[0], mask.numpy()[None]

        def drop(a: Tensor) -> Tensor:
            run(memory, stream, count, cut)
            count[0] += 1
            return torch.mul(a, mask, out=out)

        return drop

    def _forward(self, of: Program, i: int, threads: bool) -> Any:
        from groundstate.compute.population.dense_numba import FORWARD as COMPILED

        kind, bias, z = of.layers[i].activation, of.biases[i], self.values[i]
        slow = kind == "tanh" and of.dtype == torch.float64  # torch's is quicker there
        if bias is not None and (kind or "linear") in COMPILED and not slow:
            run = COMPILED[kind or "linear"][threads and z.numel() > _SMALL]
            memory, shift = z.numpy()[:, None], bias.numpy()[:, None]  # every unit a member

            def compiled(z: Tensor) -> Tensor:
                run(memory, shift)
                return z

            return compiled
        column = None if bias is None else bias.unsqueeze(1)
        if kind is None and column is None:
            return None
        out = self.outputs[i] if kind in KEEPS_INPUT else None

        def eager(z: Tensor) -> Tensor:
            if column is not None:
                z.add_(column)
            if kind is None:
                return z
            return FORWARD[kind](z) if out is None else out.copy_(FORWARD[kind](z))

        return eager

    def _backward(self, of: Program, i: int, threads: bool) -> Any:
        from groundstate.compute.population.dense_numba import BACKWARD as COMPILED
        from groundstate.compute.population.dense_numba import ROW_SUMS

        kind, sums = of.layers[i].activation, of.sums[i]
        last = i == len(of.layers) - 1
        delta = self.values[i] if last else self.deltas[i]
        many = threads and delta.numel() > _SMALL
        g, into = delta.numpy()[:, None], None if sums is None else sums.numpy()[:, None]
        if into is not None and (last or kind in COMPILED):
            if last:
                return lambda delta: ROW_SUMS[many](g, into)
            run, kept = COMPILED[str(kind)][many], self.values[i].numpy()[:, None]
            return lambda delta: run(g, kept, into)

        def eager(delta: Tensor) -> None:
            if not last and kind is not None:
                BACKWARD[kind](delta, self.values[i])
            if sums is not None:
                torch.sum(delta, 1, out=sums)

        return eager


def _times(mask: Tensor, delta: Tensor) -> None:
    delta.mul_(mask)
