r"""Many steps of one small multilayer network after the other, in one compiled call.

.. math:: Z_j = W_j A_{j-1} + b_j, \qquad \nabla W_j = \Delta_j A_{j-1}^\top, \qquad
    \Delta_{j-1} = (W_j^\top\Delta_j)\odot\sigma',

as in ``compute.dense``, for one member at a time: its parameters, moments and activations stay in the
cache of one core, and nothing lies between two products. Every member is computed by itself, so its
bits do not depend on the others, nor on how many threads share the members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from groundstate.compute.population.dense import Layer
from groundstate.compute.population.dense_numba import _FAST, BACKWARD, FORWARD, HEADS, ROW_SUMS
from groundstate.compute.population.update_numba import UPDATE
from groundstate.errors import NotApplicable

ACTS = {None: 0, "tanh": 1, "relu": 2}
CODES = {"softmax": 0, "squared": 1, "logistic": 2}

_njit: Any = numba.njit
_bias, _tanh, _relu = (FORWARD[kind][0] for kind in ("linear", "tanh", "relu"))
_tanh_back, _relu_back = BACKWARD["tanh"][0], BACKWARD["relu"][0]
_row_sums = ROW_SUMS[0]
_softmax, _squared, _logistic = (HEADS[kind][0] for kind in CODES)
_update = UPDATE[0]


def table(layers: Sequence[Layer], places: dict[str, tuple[int, Any]]) -> NDArray[Any]:
    """Rows (place of W, out, in, place of b, activation)."""
    rows = []
    for layer in layers:
        if layer.bias is None or layer.dropout is not None or layer.activation not in ACTS:
            raise NotApplicable("compiled steps are for tanh and relu layers without dropout")
        at, (out, width) = places[layer.weight]
        rows.append((at, out, width, places[layer.bias][0], ACTS[layer.activation]))
    return np.array(rows, dtype=np.int64)


@_njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def run_steps(
    lo: Any, hi: Any, theta: Any, mean: Any, square: Any, layers: Any, x: Any, labels: Any,
    values: Any, index: Any, weights: Any, ends: Any, head: Any, rule: Any,
    blocks: Any, columns: Any, awake: Any, nesterov: Any, losses: Any, pulls: Any,
) -> None:  # fmt: skip
    """Steps of members lo to hi.

    theta : (P, D), changed, as are the moments mean and square
    x, labels or values : (N, d), (N,) or (N, m)
    index : (1 or P, M) rows, weights like it or (1, 0); step k has those from ends[k] to ends[k + 1]
    columns, awake : (K, P, 12), (K, P); losses, pulls : (K, P), written
    """
    size, depth = theta.shape[1], len(layers)
    most = 0
    for k in range(len(ends) - 1):
        most = max(most, ends[k + 1] - ends[k])
    at = np.zeros(depth + 1, np.int64)
    for i in range(depth):
        at[i + 1] = at[i] + layers[i, 1] * most
    one = theta.dtype.type(1)
    acts, deltas = np.empty(at[depth], theta.dtype), np.empty(at[depth], theta.dtype)
    grad = np.zeros(size, theta.dtype)
    own, share = np.empty((most, x.shape[1]), x.dtype), np.empty(most, theta.dtype)
    y, t = np.empty(most, np.int64), np.empty((most, values.shape[1]), values.dtype)
    loss = np.empty(1, theta.dtype)
    for p in range(lo, hi):
        line = p % len(index)
        for k in range(len(ends) - 1):
            if not awake[k, p]:
                losses[k, p] = 0
                continue
            first, rows = ends[k], ends[k + 1] - ends[k]
            for r in range(rows):
                i = index[line, first + r]
                own[r, :] = x[i, :]
                if head == 0:
                    y[r] = labels[i]
                else:
                    t[r, :] = values[i, :]
            if weights.shape[1] == 0:
                share[:rows] = one / theta.dtype.type(rows)
            else:
                w = weights[p % len(weights), first : first + rows]
                total = 0.0
                for r in range(rows):
                    total += w[r]
                total = max(total, np.finfo(theta.dtype).tiny)
                for r in range(rows):
                    share[r] = w[r] / total
            for i in range(depth):
                h = layers[i, 1]
                W = theta[p, layers[i, 0] : layers[i, 0] + h * layers[i, 2]].reshape(
                    h, layers[i, 2]
                )
                b = theta[p, layers[i, 3] : layers[i, 3] + h].reshape(1, h)
                z = acts[at[i] : at[i] + h * rows].reshape(h, rows)
                if i == 0:
                    np.dot(W, own[:rows].T, z)
                else:
                    fed = acts[at[i - 1] : at[i - 1] + layers[i, 2] * rows]
                    np.dot(W, fed.reshape(layers[i, 2], rows), z)
                if layers[i, 4] == 1:
                    _tanh(z.reshape(1, h, rows), b)
                elif layers[i, 4] == 2:
                    _relu(z.reshape(1, h, rows), b)
                else:
                    _bias(z.reshape(1, h, rows), b)
            last = depth - 1
            h = layers[last, 1]
            s = acts[at[last] : at[last] + h * rows].reshape(1, h, rows)
            part, targets = share[:rows].reshape(1, rows), t[:rows].reshape(1, rows, t.shape[1])
            if head == 0:
                _softmax(s, y[:rows].reshape(1, rows), part, loss)
            elif head == 1:
                _squared(s, targets, part, loss)
            else:
                _logistic(s, targets, part, loss)
            for i in range(last, -1, -1):
                h, width = layers[i, 1], layers[i, 2]
                source = acts if i == last else deltas
                delta = source[at[i] : at[i] + h * rows].reshape(h, rows)
                sums = grad[layers[i, 3] : layers[i, 3] + h].reshape(1, h)
                kept = acts[at[i] : at[i] + h * rows].reshape(1, h, rows)
                if i == last or layers[i, 4] == 0:
                    _row_sums(delta.reshape(1, h, rows), sums)
                elif layers[i, 4] == 1:
                    _tanh_back(delta.reshape(1, h, rows), kept, sums)
                else:
                    _relu_back(delta.reshape(1, h, rows), kept, sums)
                into = grad[layers[i, 0] : layers[i, 0] + h * width].reshape(h, width)
                if i == 0:
                    np.dot(delta, own[:rows], into)
                    continue
                fed2 = acts[at[i - 1] : at[i - 1] + width * rows].reshape(width, rows)
                np.dot(delta, fed2.T, into)
                W = theta[p, layers[i, 0] : layers[i, 0] + h * width].reshape(h, width)
                np.dot(
                    W.T, delta, deltas[at[i - 1] : at[i - 1] + width * rows].reshape(width, rows)
                )
            q, v = p % len(mean), p % len(square)
            pulls[k, p] = 0
            _update(
                rule, theta[p : p + 1], grad, blocks, mean[q : q + 1], square[v : v + 1],
                columns[k, p : p + 1], awake[k, p : p + 1], nesterov, pulls[k, p : p + 1],
            )  # fmt: skip
            losses[k, p] = loss[0]
