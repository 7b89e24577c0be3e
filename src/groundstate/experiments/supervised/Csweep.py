r"""C trades margin for violations; few support vectors are not guaranteed."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import clouds, is_falling
from groundstate.models.svm.svc import SVC

CS = np.logspace(-3, 3, 13)
GAMMAS = np.logspace(-2, 3, 11)
DISTANCES = np.linspace(0.0, 5.0, 11)


@experiment("SUP-X-Csweep", theme="supervised", title="C trades margin for violations", slow=True)
def csweep(seed: int = 0, *, quick: bool = False) -> Result:
    r"""In :math:`\tfrac12\|w\|^2 + C\sum\xi_i` a larger C buys fewer violations with a narrower
    margin: both :math:`1/\|w\|` and :math:`\sum\xi_i` never rise with C. The share of support
    vectors depends on the kernel's width and on the overlap, from a few to nearly all rows.

    200 rows in two clouds: C from 1e-3 to 1e3, γ of a Gaussian kernel from 0.01 to 1000, and the
    distance of the clouds from 0 to 5 standard deviations.
    """
    key = Key.of(seed)
    X, y = clouds(key.fold("data").numpy(), [[-1, 0], [1, 0]], 1.0, 200)
    machines = [SVC(kernel="linear", C=C, tol=1e-6).fit(X, y) for C in CS]
    margins = [float(m.margin_[0]) for m in machines]
    slack = [float(m.report().slack[0]) for m in machines]
    by_c = [len(m.support_) / len(X) for m in machines]
    by_gamma = [len(SVC(gamma=g).fit(X, y).support_) / len(X) for g in GAMMAS]
    noise = clouds(key.fold("overlap").numpy(), [[0, 0], [0, 0]], 1.0, 200)[0]
    by_overlap = []
    for apart in DISTANCES:
        moved = noise + np.column_stack([np.where(y == 1, apart / 2, -apart / 2), np.zeros(200)])
        by_overlap.append(len(SVC(kernel="linear").fit(moved, y).support_) / 200)
    shares = [*by_c, *by_gamma, *by_overlap]
    claims = [
        Claim.equal("margin never rises with C", is_falling(margins, 1e-5), True),
        Claim.equal("summed slack never rises with C", is_falling(slack, 1e-5), True),
        Claim.below("smallest share of support vectors", min(shares), 0.2),
        Claim.above("largest share of support vectors", max(shares), 0.8),
    ]
    numbers = {"margin": margins, "slack": slack, "share by C": by_c, "share by gamma": by_gamma,
               "share by distance": by_overlap}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.loglog(CS, margins, "o-", color=COLOURS[0], markersize=3, label="margin 1/‖w‖")
        left.loglog(CS, np.array(slack) / len(X), "s-", color=COLOURS[1], markersize=3,
                    label="mean slack")  # fmt: skip
        left.semilogx(CS, by_c, "^-", color=COLOURS[2], markersize=3, label="support share")
        left.set(title="C", xlabel="C")
        left.legend()
        middle.semilogx(GAMMAS, by_gamma, "o-", color=COLOURS[2], markersize=3)
        middle.set(title="width of the kernel", xlabel="γ", ylabel="support share", ylim=(0, 1.03))
        right.plot(DISTANCES, by_overlap, "o-", color=COLOURS[2], markersize=3)
        right.set(title="overlap", xlabel="distance of the clouds", ylim=(0, 1.03))

    return Result(claims, numbers, draw, size=(10.5, 3.2))
