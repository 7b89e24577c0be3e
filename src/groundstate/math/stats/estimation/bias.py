r"""What an estimator does on average: :math:`\mathrm{MSE} = \mathrm{bias}^2 + \mathrm{variance}`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.distributions import Distribution

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.math.distributions.operations import draw

BLOCK = 2**22  # numbers drawn at a time


@dataclass(frozen=True)
class EstimatorReport(Displayed):
    """Bias, variance and mean squared error over repeated samples, each with its Monte Carlo error.

    Attributes
    ----------
    bias, variance, mse : of the estimator
    bias_error, variance_error, mse_error : their standard errors from the finite number of repeats
    n, repeats : rows of a sample, samples
    estimates : ``(repeats,)``
    """

    bias: float
    bias_error: float
    variance: float
    variance_error: float
    mse: float
    mse_error: float
    n: int
    repeats: int
    estimates: NDArray[np.float64]


def estimator_report(
    estimator: Callable[..., Any],
    sampler: Distribution | Callable[[tuple[int, int], np.random.Generator], Any],
    truth: float,
    n: int,
    repeats: int = 10_000,
    *,
    random_state: Key | RandomState = 0,
) -> EstimatorReport:
    r"""Repeat a sample of n rows and its estimate T, and compare with the truth θ.

    .. math:: \text{bias} = E\,T - \theta, \qquad E(T - \theta)^2 = \text{bias}^2 + \operatorname{Var} T

    An estimator is a function of data, an estimate its value. A biased way of drawing samples is a matter of
    the sampler, and shows in the bias too.

    Parameters
    ----------
    estimator : maps a sample ``(n,)`` to a number; one that takes ``axis`` gets all samples at once
    sampler : torch distribution, or a function ``((repeats, n), generator) -> array``
    truth : θ
    n, repeats : rows of a sample, samples

    Examples
    --------
    >>> import torch
    >>> normal = torch.distributions.Normal(torch.tensor(0.0).double(), torch.tensor(1.0).double())
    >>> found = estimator_report(np.var, normal, 1.0, n=5)
    >>> abs(found.bias + 1 / 5) < 4 * found.bias_error
    True
    """
    if n < 1 or repeats < 2:
        raise ValueError(f"n must be at least 1 and repeats at least 2, got {n} and {repeats}")
    key = Key.of(random_state)
    try:
        batched = "axis" in inspect.signature(estimator).parameters
    except (TypeError, ValueError):
        batched = False
    step, parts = max(1, BLOCK // n), []
    for i, first in enumerate(range(0, repeats, step)):
        rows = _sample(sampler, (min(step, repeats - first), n), key.fold(i))
        if batched:
            parts.append(np.asarray(estimator(rows, axis=-1), np.float64))
        else:
            parts.append(np.array([float(estimator(row)) for row in rows]))
    T = np.concatenate(parts)
    off = T - truth
    bias, variance, square = float(off.mean()), float(T.var()), off**2
    fourth = float(((T - T.mean()) ** 4).mean())
    root = math.sqrt(repeats)
    return EstimatorReport(
        bias, float(T.std(ddof=1)) / root, variance, math.sqrt(max(fourth - variance**2, 0.0)) / root,
        float(square.mean()), float(square.std(ddof=1)) / root, n, repeats, T,
    )  # fmt: skip


def _sample(sampler: Any, shape: tuple[int, int], key: Key) -> NDArray[np.float64]:
    if isinstance(sampler, Distribution):
        flat = draw(sampler, shape[0] * shape[1], key.torch())
        return flat.double().cpu().numpy().reshape(shape)
    rows = np.asarray(sampler(shape, key.numpy()), np.float64)
    if rows.shape != shape:
        raise ValueError(f"the sampler was asked for {shape} numbers and gave {rows.shape}")
    return rows
