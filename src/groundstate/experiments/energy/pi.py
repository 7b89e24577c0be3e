r"""How fast a Monte Carlo mean settles, and a mean that never does."""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Cauchy

from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import Expectation, expect
from groundstate.math.distributions.operations import draw
from groundstate.math.stats import expect_mc

F64 = torch.float64
SIZES = (10, 100, 1000, 10_000, 100_000, 1_000_000)
SPREAD = SIZES[1:5]  # for Sobol points
BLOCK = 2**20  # numbers at a time
FAR = SIZES[:5]  # for means that do not settle
SIGMA = math.sqrt(math.pi * (4 - math.pi))  # 1.642: standard deviation of 4·1(u in the quadrant)


def quadrant(u: Tensor) -> Tensor:
    """4 where a point of the unit square lies in the quarter disc, else 0; its mean is π."""
    return 4.0 * (u.square().sum(-1) < 1).double()


@experiment("ENE-X-pi", theme="energy", title="Monte Carlo rate", slow=True)
def monte_carlo_pi(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\pi = E[4\cdot 1(u_1^2 + u_2^2 < 1)]` for u uniform on the unit square, from n draws.

    The draws have standard deviation :math:`\sqrt{\pi(4-\pi)} = 1.642`, so the mean errs by
    :math:`1.642/\sqrt n`: slope −½ on log-log axes, whatever the dimension. The law of large numbers
    asks for a mean to exist: the mean of n Cauchy draws is as wild as a single one, for every n, and
    its standard error, which does not fall, gives it away. Points that are spread evenly (Sobol's) do better.
    """
    key = Key.of(seed)
    rms, reported, wild, even, counts = [], [], [], [], []
    for n in SIZES:
        repeats = min(3000, max(50, 3_000_000 // n))
        counts.append(repeats)
        found = _means(key.fold("pi", n), n, repeats)
        rms.append(float((found.mean - math.pi).square().mean().sqrt()))
        reported.append(float(found.stderr.mean()) * math.sqrt(n))
        if n in FAR:
            wild.append(float(_cauchy(key.fold("cauchy", n), n, repeats).mean.abs().median()))
        if n in SPREAD:
            off = [
                float(expect_mc(quadrant, 2, n, qmc="sobol", random_state=key.fold("even", i)).mean)
                - math.pi
                for i in range(6)
            ]
            even.append(float(np.sqrt(np.mean(np.square(off)))))
    slope, wild_slope, even_slope = _slope(SIZES, rms), _slope(FAR, wild), _slope(SPREAD, even)
    scaled = [r * math.sqrt(n) for r, n in zip(rms, SIZES)]
    pooled = float(np.sqrt(np.average(np.square(scaled), weights=counts)))

    one = expect(quadrant, _uniform, 1_000_000, generator=key.fold("one").torch())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        distribution = Cauchy(torch.tensor(0.0, dtype=F64), torch.tensor(1.0, dtype=F64))
        flagged = expect(None, distribution, 100_000, generator=key.fold("flag").torch())
    warned = any(issubclass(w.category, Unreliable) for w in heard)

    claims = [
        Claim.close("π: slope of log error against log n", slope, -0.5, tol=0.05),
        Claim.close("π: root mean square error times √n", pooled, SIGMA, tol=0.05),
        Claim.close("π: reported standard error times √n, n = 10⁶", reported[-1], 1.642, tol=0.002),
        Claim.at_most("π from a million draws: error in standard errors",
                      float((one.mean - math.pi).abs() / one.stderr), 4.0),
        Claim.equal("π: the mean is reliable", one.reliable, True),
        Claim.at_most("π from Sobol points: slope of log error against log n", even_slope, -0.6),
        Claim.at_most("π from 10⁵ Sobol points: error over that of random ones", even[-1] / rms[4], 0.3),
        Claim.close("Cauchy: slope of log median |mean| against log n", wild_slope, 0.0, tol=0.05),
        Claim.equal("Cauchy: flagged, with a warning", (flagged.reliable, warned), (False, True)),
    ]  # fmt: skip
    numbers = {
        "n": list(SIZES), "rms": rms, "stderr √n": reported, "slope": slope, "pi": float(one.mean),
        "Cauchy |mean|": wild, "Cauchy slope": wild_slope, "Sobol rms": even, "Sobol slope": even_slope,
    }  # fmt: skip
    shown = _uniform(4000, key.fold("one").torch())
    paths = quadrant(shown).cumsum(0) / torch.arange(1, 4001)
    noise = draw(distribution, 4000, key.fold("flag").torch())
    wild_path = noise.cumsum(0) / torch.arange(1, 4001)

    def draw_all(figure: Figure) -> None:
        top, bottom = figure.subplots(2, 3)
        for ax, n in zip(top, (100, 1000, 4000)):
            inside = quadrant(shown[:n]) > 0
            for own, colour in ((inside, COLOURS[0]), (~inside, COLOURS[1])):
                at = shown[:n][own].numpy()
                ax.scatter(at[:, 0], at[:, 1], s=2, color=colour)
            ax.set(
                title=f"n = {n}: {float(paths[n - 1]):.3f}", aspect="equal", xticks=[], yticks=[]
            )
        _running(bottom[0], paths, math.pi, "running mean: π")
        _running(bottom[1], wild_path, 0.0, "running mean: Cauchy")
        bottom[2].loglog(SIZES, rms, "o", color=COLOURS[0], label=f"π: slope {slope:.2f}")
        line = [SIGMA / math.sqrt(n) for n in SIZES]
        bottom[2].loglog(SIZES, line, color="black", linestyle=":", label="1.642/√n")
        bottom[2].loglog(
            SPREAD, even, "o", color=COLOURS[2], label=f"Sobol: slope {even_slope:.2f}"
        )
        bottom[2].loglog(FAR, wild, "o", color=COLOURS[1], label=f"Cauchy: slope {wild_slope:.2f}")
        bottom[2].set(title="error of the mean", xlabel="draws n")
        bottom[2].legend()

    return Result(claims, numbers, draw_all, size=(9.0, 5.6))


def _uniform(n: int, generator: torch.Generator, repeats: tuple[int, ...] = ()) -> Tensor:
    return torch.rand(n, *repeats, 2, generator=generator)


def _means(key: Key, n: int, repeats: int) -> Expectation:
    """``repeats`` independent means of n draws each."""
    source = lambda m, g: _uniform(m, g, (repeats,))  # noqa: E731
    return expect(quadrant, source, n, generator=key.torch(), block=BLOCK // repeats)


def _cauchy(key: Key, n: int, repeats: int) -> Expectation:
    zeros = torch.zeros(repeats, dtype=F64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Unreliable)
        distribution = Cauchy(zeros, zeros + 1)
        return expect(None, distribution, n, generator=key.torch(), block=BLOCK // repeats)


def _slope(sizes: tuple[int, ...], errors: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def _running(ax: object, path: Tensor, limit: float, title: str) -> None:
    ax.semilogx(range(1, len(path) + 1), path.numpy(), color=COLOURS[0])  # type: ignore[attr-defined]
    ax.axhline(limit, color="black", linewidth=0.8, linestyle=":")  # type: ignore[attr-defined]
    ax.set(title=title, xlabel="draws n")  # type: ignore[attr-defined]
