r"""Networks written down instead of trained: universal approximation by hand, and folding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.blocks.mlp import MLP

KAPPA = 40.0
FORMS = ("S", "2S")
Function = Callable[[Tensor], Tensor]


def table(values: ArrayLike, kappa: float = KAPPA, form: str = "S") -> MLP:
    r"""A sigmoid network with f(s) = ``values[s − 1]`` at s = 1 … S.

    .. math:: f(x) = \sum_{s=1}^S (f_s - f_{s-1})\,\sigma(\kappa(x - s + \tfrac12)),\qquad f_0 = 0

    Each unit is a step half way between two entries. ``form="2S"`` has two units per entry, a
    door :math:`\sigma(\kappa(x-s+\frac12))-\sigma(\kappa(x-s-\frac12))` around s, and output
    weights :math:`\pm f_s`: they store the values themselves.

    Parameters
    ----------
    values : (S,) entries
    kappa : steepness; 40 leaves errors near :math:`e^{-20}`
    form : "S" or "2S" hidden units

    Examples
    --------
    >>> net = table([3.0, 1.0, 4.0])
    >>> net(torch.tensor([[1.0], [2.0], [3.0]]).double()).flatten().round(decimals=6).tolist()
    [3.0, 1.0, 4.0]
    """
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
    f = np.asarray(values, float).ravel()
    s = np.arange(1, len(f) + 1)
    if form == "S":
        edges, weights = s - 0.5, np.diff(f, prepend=0.0)
    else:
        edges = np.concatenate([s - 0.5, s + 0.5])
        weights = np.concatenate([f, -f])
    return _shallow(np.full(len(edges), kappa), -kappa * edges, weights, 0.0, "sigmoid")


def step(
    f: Function, a: float, b: float, *, epsilon: float | None = None, lipschitz: float = 1.0,
    n: int | None = None,
) -> MLP:  # fmt: skip
    r"""A network of step units within ε of a Lipschitz function on [a, b].

    .. math:: N = \lceil L(b-a)/\varepsilon\rceil,\qquad \sup|f - \hat f| \le L\frac{b-a}{2N}

    The interval is cut in N parts and f answered by its value in the middle of each.

    Parameters
    ----------
    f : elementwise function of a tensor
    a, b : interval
    epsilon, lipschitz : ε and L give N
    n : N itself, instead of ε

    Examples
    --------
    >>> step(torch.sin, 0.0, 2 * math.pi, epsilon=0.1).capacity
    63
    """
    if not a < b:
        raise ValueError(f"an interval has a < b, got a={a}, b={b}")
    if (n is None) == (epsilon is None):
        raise ValueError("give one of epsilon and n")
    if n is None:
        assert epsilon is not None
        if not (epsilon > 0 and lipschitz > 0):
            raise ValueError(f"epsilon and lipschitz are positive, got {epsilon}, {lipschitz}")
        n = math.ceil(lipschitz * (b - a) / epsilon)
    edges = np.linspace(a, b, n + 1)
    values = _values(f, (edges[:-1] + edges[1:]) / 2)
    return _shallow(np.ones(n), -edges[:-1], np.diff(values, prepend=0.0), 0.0, "step")


def relu_interpolant(knots: ArrayLike, values: ArrayLike | Function) -> MLP:
    r"""The ReLU network that is linear between knots and passes through their values.

    .. math:: f(x) = f_0 + \sum_k (m_k - m_{k-1})\,\mathrm{ReLU}(x - t_k),\qquad
        m_k = \frac{f_{k+1}-f_k}{t_{k+1}-t_k},\; m_{-1} = 0

    One hidden unit per piece; it is constant before the first knot. The error on a smooth function
    falls with the square of the number of pieces.

    Parameters
    ----------
    knots : (K + 1,) increasing
    values : (K + 1,) at the knots, or a function

    Examples
    --------
    >>> net = relu_interpolant([0.0, 1.0, 3.0], [0.0, 2.0, 0.0])
    >>> net(torch.tensor([[0.5], [1.0], [2.0]]).double()).flatten().tolist()
    [1.0, 2.0, 1.0]
    """
    t = np.asarray(knots, float)
    if t.ndim != 1 or len(t) < 2 or not (np.diff(t) > 0).all():
        raise ValueError(f"knots are at least two increasing numbers, got {t.tolist()}")
    f = _values(values, t) if callable(values) else np.asarray(values, float)
    if f.shape != t.shape:
        raise ShapeError(f"{len(t)} knots need {len(t)} values, got {f.shape}")
    slopes = np.diff(f) / np.diff(t)
    changes = np.diff(slopes, prepend=0.0)
    return _shallow(np.ones(len(changes)), -t[:-1], changes, float(f[0]), "relu")


def boxes(low: ArrayLike, high: ArrayLike) -> list[tuple[np.ndarray, np.ndarray]]:
    """Half-spaces W x + c > 0 of axis-parallel boxes with corners ``low``, ``high`` (C, n)."""
    low, high = np.atleast_2d(np.asarray(low, float)), np.atleast_2d(np.asarray(high, float))
    eye = np.eye(low.shape[1])
    return [(np.vstack([eye, -eye]), np.concatenate([-l, h])) for l, h in zip(low, high)]


def walls(
    cells: Sequence[tuple[ArrayLike, ArrayLike]], values: ArrayLike, kappa: float = KAPPA
) -> MLP:
    r"""A sigmoid network with a given value inside each convex cell and 0 outside.

    A cell is an AND of m half-spaces :math:`w_i^\top x + c_i > 0`, its walls:

    .. math:: h_i = \sigma(\kappa(w_i^\top x + c_i)),\qquad
        \text{in} = \sigma\big(\kappa(\textstyle\sum_{i\le m} h_i - m + \tfrac12)\big),\qquad
        f = \sum_{\text{cells}} f_c\,\text{in}_c

    The output weights store the values.

    Parameters
    ----------
    cells : pairs W (m, n), c (m,); ``boxes`` makes those of boxes
    values : one per cell
    kappa : steepness

    Examples
    --------
    >>> net = walls(boxes([[0.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [2.0, 1.0]]), [5.0, -2.0])
    >>> x = torch.tensor([[0.5, 0.5], [1.5, 0.5], [0.5, 2.0]]).double()
    >>> net(x).flatten().round(decimals=4).abs().tolist()
    [5.0, 2.0, 0.0]
    """
    planes = [(np.atleast_2d(np.asarray(W, float)), np.asarray(c, float)) for W, c in cells]
    f = np.asarray(values, float)
    if len(planes) != len(f) or not planes:
        raise ShapeError(f"{len(planes)} cells need {len(planes)} values, got {f.shape}")
    W, c = np.concatenate([p[0] for p in planes]), np.concatenate([p[1] for p in planes])
    m = np.array([len(p[1]) for p in planes])
    member = np.repeat(np.eye(len(m)), m, axis=1)  # (cells, walls)
    net = MLP(W.shape[1], (len(W), len(m)), 1, "sigmoid").double()
    _set(net, [(kappa * W, kappa * c), (kappa * member, kappa * (0.5 - m)), (f[None], np.zeros(1))])
    return net


def folding(D: int = 3, K: int = 1) -> MLP:
    r"""A ReLU network of K layers of D units with :math:`(D+1)^K` linear regions on [−½, D].

    .. math:: f(x) = 5 - 3\,\mathrm{ReLU}(x) + 2\,\mathrm{ReLU}(x-1) - 2\,\mathrm{ReLU}(2-x)
        + 2\,\mathrm{ReLU}(x-3) - 2\,\mathrm{ReLU}(x-4) + \dots

    with D units zigzags D + 1 times between 0 and 1: it folds the line, and what the next copy
    :math:`g(y) = f((D+1)y-1)` draws on [0, 1] appears once per fold. The composition is one
    network, its layers merged where copies meet, with :math:`3D+1+(K-1)D(D+1)` parameters. The
    regions repeat: they are not free to be anything.

    Parameters
    ----------
    D : units per layer, at least 3
    K : layers

    Examples
    --------
    >>> net = folding(5, 5)
    >>> net.n_parameters, net.widths
    (136, (5, 5, 5, 5, 5))
    """
    if D < 3 or K < 1:
        raise ValueError(f"folding needs D >= 3 units and K >= 1 layers, got D={D}, K={K}")
    theta = np.array([-3.0, *(2.0 * (-1) ** (d + 1) for d in range(1, D))])  # (D,)
    sign = np.ones(D)
    sign[2] = -1  # one unit looks to the left: its slope is the first piece's
    first = sign[:, None], -sign * np.arange(D)
    out = theta[None], np.array([5.0])
    # y = theta a + 5, then the next copy's units see (D + 1) y - 1
    between = (D + 1) * sign[:, None] * theta[None], sign * ((D + 1) * 5.0 - 1 - np.arange(D))
    net = MLP(1, (D,) * K, 1, "relu").double()
    _set(net, [first, *[between] * (K - 1), out])
    return net


def compose(*nets: nn.Module) -> nn.Sequential:
    """Networks one after the other as one, with affine layers merged where they meet."""
    from groundstate.nn.piecewise.collapse import collapse_linear

    return collapse_linear(nn.Sequential(*nets))


class Bernstein(nn.Module):
    r"""Weierstrass' theorem made explicit: :math:`\sum_k f(\tfrac kn)\binom nk x^k(1-x)^{n-k}`.

    Parameters
    ----------
    values : (n + 1,) values of f at k/n

    Examples
    --------
    >>> B = bernstein(lambda x: x**2, 10)  # x² + x(1 − x)/n
    >>> round(B(torch.tensor([0.5]).double()).item(), 12)
    0.275
    """

    coefficients: Tensor

    def __init__(self, values: Sequence[float]) -> None:
        super().__init__()
        self.values = list(values)
        self.register_buffer("coefficients", torch.tensor(self.values, dtype=torch.float64))

    def config(self) -> dict[str, list[float]]:
        return {"values": self.values}

    def forward(self, x: Tensor) -> Tensor:
        n = len(self.coefficients) - 1
        k = torch.arange(n + 1, dtype=torch.float64, device=x.device)
        binomial = torch.exp(math.lgamma(n + 1) - (k + 1).lgamma() - (n - k + 1).lgamma())
        u = x.double()[..., None]
        mass = binomial * u**k * (1 - u) ** (n - k)  # (..., n + 1)
        return (mass @ self.coefficients).to(x.dtype)


def bernstein(f: Function, n: int) -> Bernstein:
    """The Bernstein polynomial of degree n of a function on [0, 1]."""
    if not 1 <= n <= 1000:  # beyond, binomials leave the range of floats
        raise ValueError(f"the degree is at least 1 and at most 1000, got {n}")
    return Bernstein(_values(f, np.arange(n + 1) / n).tolist())


def _values(f: Function, x: np.ndarray) -> np.ndarray:
    return np.asarray(f(torch.from_numpy(x)).numpy(), float)


def _shallow(w: np.ndarray, b: np.ndarray, out: np.ndarray, offset: float, activation: str) -> MLP:
    net = MLP(1, (len(w),), 1, activation).double()
    _set(net, [(w[:, None], b), (out[None], np.array([offset]))])
    return net


@torch.no_grad()
def _set(net: MLP, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    linear = [m for m in net.layers if isinstance(m, nn.Linear)]
    for layer, (W, b) in zip(linear, layers, strict=True):
        layer.weight.copy_(torch.from_numpy(np.ascontiguousarray(W)))
        layer.bias.copy_(torch.from_numpy(np.asarray(b, float)))
