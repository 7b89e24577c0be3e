r"""Means and paths in the space of distributions.

.. math:: \mathrm{bar} = \arg\min_p \sum_k w_kW_2^2(p_k, p), \qquad
          p_t = \arg\min_p\ (1-t)W_2^2(p_0, p) + tW_2^2(p_1, p)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.arrays import as_tensor, takes_arrays, to_numpy
from groundstate.math.transport import gaussians, images
from groundstate.math.transport.costs import cost, masses
from groundstate.math.transport.exact import emd
from groundstate.math.transport.line import coupled

Kind = Literal["points", "images"]


class Measure(NamedTuple):
    """Weighted points: values ``(n,)`` or rows ``(n, d)`` with masses ``(n,)`` that sum to 1."""

    points: Any
    weights: Any


def barycenter(
    measures: Sequence[Any],
    weights: Any = None,
    *,
    kind: Kind = "points",
    eps: float = 2e-3,
    debias: bool = True,
    tol: float = 1e-5,
    max_iter: int = 5000,
) -> Any:
    r"""The distribution of least mean squared transport distance to some others.

    ==========  =================================================================================
    Gaussians   torch ``Normal`` or ``MultivariateNormal``: the mean of the means, and the fixed
                point of covariances in the Bures metric. Returns a distribution
    points      samples on the line: quantiles are averaged. Returns a `Measure`
    images      ``(h, w)`` or histograms ``(n,)``: convolutional Sinkhorn in the log domain.
                Returns an image that sums to 1
    ==========  =================================================================================

    Parameters
    ----------
    measures : Gaussians; samples ``(n_k,)`` or pairs (values, masses); or images of one shape
    weights : of the measures, divided by their sum; equal unless given
    kind : how arrays are read
    eps : of images, in units of the squared longer side
    debias : of images, take the blur of ε back
    tol, max_iter : of images, change of total mass at which to stop, and steps

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> found = barycenter([Normal(0.0, 1.0), Normal(4.0, 3.0)])
    >>> round(float(found.mean), 4), round(float(found.variance), 4)
    (2.0, 4.0)
    >>> barycenter([[0.0, 1.0], [2.0, 5.0]]).points.tolist()
    [1.0, 3.0]
    """
    measures = list(measures)
    if not measures:
        raise ValueError("barycenter needs at least one measure")
    w = torch.ones(len(measures)).double() if weights is None else as_tensor(weights, "weights")
    if w.shape != (len(measures),) or bool((w < 0).any()) or not float(w.detach().sum()) > 0:
        raise ValueError(
            f"weights must be {len(measures)} non-negative numbers, not all zero, got {weights!r}"
        )
    w = w / w.sum()
    if all(isinstance(p, Distribution) for p in measures):
        return gaussians.barycenter(measures, w)
    if any(isinstance(p, Distribution) for p in measures):
        raise Unsupported("measures are torch distributions or arrays, not both at once")
    if kind == "images":
        like = next((p for p in measures if isinstance(p, Tensor)), None)
        stack = torch.stack([as_tensor(p, f"measures[{k}]", like) for k, p in enumerate(measures)])
        out = images.barycenter(stack, w.to(stack), eps, debias, tol, max_iter)
        return out if like is not None else to_numpy(out)
    if kind != "points":
        raise ValueError(f"kind must be 'points' or 'images', got {kind!r}")
    pairs = [p if isinstance(p, tuple) else (p, None) for p in measures]
    given = next((v for pair in pairs for v in pair if isinstance(v, Tensor)), None)
    values = [as_tensor(x, "points", given) for x, _ in pairs]
    mass = [None if m is None else as_tensor(m, "masses", given) for _, m in pairs]
    if any(x.ndim != 1 for x in values):
        raise ShapeError(
            "the barycentre of samples is for values on the line (n,); Gaussians and images have "
            "one in more dimensions"
        )
    quantiles, gaps = coupled(values, mass)
    points = torch.einsum("k,kn->n", w.to(quantiles[0]), torch.stack(quantiles))
    found = _merged(points, gaps)
    return found if given is not None else to_numpy(found)


def geodesic(
    p0: Any,
    p1: Any,
    t: float,
    *,
    kind: Kind = "points",
    p0_weights: Any = None,
    p1_weights: Any = None,
    **settings: Any,
) -> Any:
    r"""Displacement interpolation: every grain of mass goes straight at constant speed.

    t = 0 is p0, t = 1 is p1. The mixture :math:`(1-t)p_0 + tp_1` fades one out and the other in
    instead.

    Parameters
    ----------
    p0, p1 : two Gaussians; two samples, values ``(n,)`` or rows ``(n, d)``; or two images
    t : time in [0, 1]
    kind : how arrays are read
    p0_weights, p1_weights : masses of the points, equal unless given
    settings : of images, ``eps``, ``debias``, ``tol`` and ``max_iter`` as in `barycenter`

    Examples
    --------
    >>> geodesic([0.0, 1.0], [4.0, 9.0], 0.5).points.tolist()
    [2.0, 5.0]
    """
    if not 0 <= t <= 1:
        raise ValueError(f"t must be between 0 and 1, got {t!r}")
    if isinstance(p0, Distribution) and isinstance(p1, Distribution):
        return gaussians.geodesic(p0, p1, t)
    if kind == "images":
        if t in (0, 1):
            end = as_tensor(p0 if t == 0 else p1, "p0" if t == 0 else "p1")
            whole = end / end.sum()
            return whole if isinstance(p0, Tensor) or isinstance(p1, Tensor) else to_numpy(whole)
        return barycenter([p0, p1], [1 - t, t], kind=kind, **settings)
    if kind != "points":
        raise ValueError(f"kind must be 'points' or 'images', got {kind!r}")
    return _points(p0, p1, p0_weights, p1_weights, float(t))


@takes_arrays("p0", "p1", "a", "b")
def _points(p0: Any, p1: Any, a: Any, b: Any, t: float) -> Measure:
    if p0.ndim != p1.ndim or p0.ndim not in (1, 2) or p0.shape[1:] != p1.shape[1:]:
        raise ShapeError(
            f"geodesic needs two samples (n,) or (n, d), got {tuple(p0.shape)} and "
            f"{tuple(p1.shape)}"
        )
    if p0.ndim == 1:
        (x, y), gaps = coupled([p0, p1], [a, b])
        return _merged((1 - t) * x + t * y, gaps)
    a, b = masses(a, p0, "p0_weights"), masses(b, p1, "p1_weights")
    plan = emd(a, b, cost(p0.detach(), p1.detach())).plan
    i, j = torch.nonzero(plan > 0, as_tuple=True)
    return Measure((1 - t) * p0[i] + t * p1[j], plan[i, j])


def _merged(points: Tensor, gaps: Tensor) -> Measure:
    """Without the pieces of no length that equal levels leave."""
    some = gaps.detach() > 4 * torch.finfo(gaps.dtype).eps
    return Measure(points[some], gaps[some])
