r"""The coefficients of an equation from measurements of its solution."""

from __future__ import annotations

import math

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models import physics

NU, POINTS = 0.1 / math.pi, 800


@experiment(
    "ARC-x-discover",
    theme="architectures",
    title="Coefficients of Burgers' equation from data",
    slow=True,
)
def discover(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`u_t + \lambda uu_x = \nu u_{xx}` with λ and ν unknown, 800 measurements of u for
    :math:`\lambda = 1`, :math:`\nu = 0.1/\pi`, without noise and with 1 % of it: both are found with u within
    3 %. ν is positive and learned as a logarithm, from 0.1; λ starts at 0.
    """
    truth = physics.library["burgers"](NU)
    problem = physics.Problem(
        truth.domain, "u.t + l*u*u.x - nu*u.xx", parameters={"l": None, "nu": None}, positive=("nu",),
        start={"l": 0.0, "nu": 0.1},
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    X = truth.domain.sample(POINTS, seed)
    u = truth.solution(X)
    found, traces = {}, {}
    for name, noise in (("0 %", 0.0), ("1 %", 0.01)):
        values = u + noise * u.std() * rng.standard_normal(POINTS)
        model = physics.PINN(
            problem, (20,) * 4, optimizer="lbfgs", lbfgs_steps=1200, n_collocation=POINTS, resample=False,
            n_bootstrap=0, random_state=seed,
        ).fit(X, values)  # fmt: skip
        found[name], traces[name] = model.parameters_, model.trace_
    claims = [
        claim
        for name, p in found.items()
        for claim in (
            Claim.close(f"λ, noise {name}", p["l"], 1.0, tol=0.03),
            Claim.close(f"ν over its value, noise {name}", p["nu"] / NU, 1.0, tol=0.03),
        )
    ]

    def draw(figure: Figure) -> None:
        for ax, (key, true) in zip(figure.subplots(1, 2), (("l", 1.0), ("nu", NU))):
            for colour, (name, trace) in zip(COLOURS, traces.items()):
                ax.plot(trace[key], color=colour, label=f"noise {name}")
            ax.axhline(true, color="0.6", ls=":")
            ax.set(xlabel="step", title="λ" if key == "l" else "ν")
            ax.legend()

    return Result(claims, {"found": found}, draw, size=(8.0, 3.0))
