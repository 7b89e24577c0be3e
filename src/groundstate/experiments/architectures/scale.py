r"""Why scores are divided by the root of the dimension."""

from __future__ import annotations

import math

import torch

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.nn import attention_weights

DIMENSIONS = (2, 8, 32, 128, 512)
KEYS = 7


@experiment("ARC-x-scale", theme="architectures", title="1/√d keeps the softmax alive")
def scale(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For normal q and k, :math:`\mathrm{Var}(q^\top k) = d`: with d the scores grow, the softmax
    chooses one key, and its slope :math:`p(1-p)` vanishes. Divided by :math:`\sqrt d` the scores keep
    unit variance, and the slope does not depend on d.

    Seven keys, d from 2 to 512, 4,000 queries; the weights come from ``nn.attention_weights``.
    """
    key, n = Key.of(seed), 1000 if quick else 4000
    variance: dict[int, float] = {}
    slope: dict[bool, list[float]] = {True: [], False: []}
    for d in DIMENSIONS:
        g = key.fold("d", d).torch()
        q = torch.randn(n, 1, d, generator=g, dtype=torch.float64)
        k = torch.randn(n, KEYS, d, generator=g, dtype=torch.float64)
        variance[d] = float((q @ k.mT).var()) / d
        for scaled in slope:
            p = attention_weights(q, k, scale=1 / math.sqrt(d) if scaled else 1.0)
            slope[scaled].append(float((p * (1 - p)).mean()))
    claims = [
        Claim.between(f"d = {d}: variance of q·k over d", v, 0.95, 1.05)
        for d, v in variance.items() if d > 2
    ] + [
        Claim.below("d = 512, unscaled: mean of p(1−p)", slope[False][-1], 0.02),
        Claim.close("d = 512, divided by √d: the same", slope[True][-1], 0.106, tol=0.003),
        Claim.close("divided by √d: d = 8 against 512", slope[True][1], slope[True][-1], tol=0.005),
    ]  # fmt: skip
    numbers = {"variance": variance, "unscaled": slope[False], "scaled": slope[True]}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.loglog(DIMENSIONS, [variance[d] * d for d in DIMENSIONS], "o-", color=COLOURS[0])
        left.loglog(DIMENSIONS, DIMENSIONS, "--", color="#889")
        left.set(title="variance of q·k", xlabel="d")
        for scaled, label in ((True, "q·k/√d"), (False, "q·k")):
            right.loglog(DIMENSIONS, slope[scaled], "o-", color=COLOURS[1 - scaled], label=label)
        right.set(title="mean slope p(1 − p) of the softmax", xlabel="d")
        right.legend()

    return Result(claims, numbers, draw)
