r"""Why squares, why n − 1, and why unbiased is not best."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.distributions import Exponential, Gamma, Normal, Poisson

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = tuple(range(2, 21, 2))
RATES = (0.5, 1.0, 2.0)
LISTED = {"unbiased": (0.8647, 0.9817, 0.9997), "biased": (0.2699, 0.2790, 0.1342)}


@experiment("MAT-x-var", theme="mathematics", title="Unbiased is not best")
def var(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Variances of independent variables add, and so do third central moments; mean absolute and
    absolute third moments do not: for Exp(1) and the sum of two, 1 and 2, 2 and 4, but 2.414553 and
    5.744140.

    :math:`\frac1n\sum(x_i - \bar x)^2` is biased by :math:`-\sigma^2/n`, which n − 1 mends, at the
    price of a larger mean squared error for normal data. From one Poisson count the only unbiased
    estimate of :math:`e^{-2\lambda}` is :math:`(-1)^X`, and it is absurd: :math:`e^{-2X}` errs far
    less.
    """
    key = Key.of(seed)
    repeats = 20_000 if quick else 40_000
    one = torch.tensor(1.0).double()
    single, double = Exponential(one), Gamma(2 * one, one)
    third = [float(stats.moments(p, 3)[2]) for p in (single, double)]
    absolute = [float(stats.moments(p, 3, absolute=True)[2]) for p in (single, double)]
    spread = [float(stats.mean_abs_dev(p)) for p in (single, double)]
    normal = Normal(0 * one, one)
    curves: dict[str, list[stats.EstimatorReport]] = {"1/n": [], "1/(n−1)": []}
    for n in SIZES:
        for name, ddof in (("1/n", 0), ("1/(n−1)", 1)):
            spread_of: Any = partial(np.var, ddof=ddof)
            curves[name].append(
                stats.estimator_report(
                    spread_of, normal, 1.0, n, repeats, random_state=key.fold("v", n)
                )
            )
    off = [abs(f.bias + 1 / n) / f.bias_error for f, n in zip(curves["1/n"], SIZES)]
    fair = [abs(f.bias) / f.bias_error for f in curves["1/(n−1)"]]
    poisson: dict[str, list[stats.EstimatorReport]] = {"unbiased": [], "biased": []}
    for lam in RATES:
        truth, source = math.exp(-2 * lam), Poisson(lam * one)
        for name, estimator in (("unbiased", lambda x, axis: (-1.0) ** x[..., 0]),
                                ("biased", lambda x, axis: np.exp(-2 * x[..., 0]))):  # fmt: skip
            poisson[name].append(
                stats.estimator_report(estimator, source, truth, 1, repeats,
                                       random_state=key.fold(name, round(10 * lam)))
            )  # fmt: skip
    miss = [
        abs(f.mse - listed) / (f.mse_error + 5e-5)
        for name, row in poisson.items()
        for f, listed in zip(row, LISTED[name])
    ]
    smaller = all(a.mse < b.mse for a, b in zip(curves["1/n"], curves["1/(n−1)"]))
    claims = [
        Claim.close("third central moment of Exp(1)", third[0], 2.0, tol=1e-8),
        Claim.close("and of the sum of two: it adds", third[1], 4.0, tol=1e-8),
        Claim.close("absolute third moment of Exp(1)", absolute[0], 2.414553, tol=1e-6),
        Claim.close("and of the sum of two: it does not add", absolute[1], 5.744140, tol=1e-6),
        Claim.close("mean distance from the median of Exp(1)", spread[0], math.log(2), tol=1e-8),
        Claim.at_most("1/n: bias + σ²/n in standard errors, largest of ten", max(off), 4.0),
        Claim.at_most("1/(n−1): bias in standard errors, largest of ten", max(fair), 4.0),
        Claim.equal("1/n has the smaller mean squared error throughout", smaller, True),
        Claim.at_most("Poisson: errors of six mean squared errors, in standard errors", max(miss), 4.0),
        Claim.at_least("(−1)^X: least mean squared error over that of exp(−2X)",
                       min(a.mse / b.mse for a, b in zip(poisson["unbiased"], poisson["biased"])), 3.0),
    ]  # fmt: skip
    numbers = {
        "third": third, "absolute third": absolute, "n": list(SIZES),
        "bias": {k: [f.bias for f in v] for k, v in curves.items()},
        "mse": {k: [f.mse for f in v] for k, v in curves.items()},
        "Poisson mse": {k: [f.mse for f in v] for k, v in poisson.items()},
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        for (name, row), colour in zip(curves.items(), COLOURS):
            left.plot(SIZES, [f.bias for f in row], "o-", color=colour, label=name)
            middle.plot(SIZES, [f.mse for f in row], "o-", color=colour, label=name)
        left.plot(SIZES, [-1 / n for n in SIZES], ":", color="black", label="−1/n")
        left.set(title="bias of the variance", xlabel="n")
        middle.set(title="mean squared error", xlabel="n")
        left.legend()
        middle.legend()
        for (name, row), colour in zip(poisson.items(), COLOURS):
            right.plot(RATES, [f.mse for f in row], "o-", color=colour, label=name)
        right.set(title="exp(−2λ) from one Poisson count", xlabel="λ", ylim=(0, 1.1))
        right.legend()

    return Result(claims, numbers, draw, size=(10.5, 3.3))
