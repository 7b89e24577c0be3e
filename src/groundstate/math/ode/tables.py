r"""Butcher tables of explicit Runge-Kutta methods.

.. math:: k_i = f\bigl(t + c_ih,\ y + h\textstyle\sum_{j<i}a_{ij}k_j\bigr), \qquad
    y \leftarrow y + h\sum_i b_ik_i .
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    r"""One method: ``a`` row by row, ``b``, ``c`` and its order p, so that the error is :math:`O(h^p)`."""

    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]

    @property
    def stages(self) -> int:
        """Evaluations of f in a step."""
        return len(self.b)


FIXED: dict[str, Table] = {
    "euler": Table(1, ((),), (1.0,), (0.0,)),
    "midpoint": Table(2, ((), (0.5,)), (0.0, 1.0), (0.0, 0.5)),
    "heun": Table(2, ((), (1.0,)), (0.5, 0.5), (0.0, 1.0)),
    "rk4": Table(
        4,
        ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
        (1 / 6, 1 / 3, 1 / 3, 1 / 6),
        (0.0, 0.5, 0.5, 1.0),
    ),
}

# Dormand and Prince, 5(4); the last stage is the first of the next step
DOPRI5 = Table(
    5,
    (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
)
# weights of order 5 minus weights of order 4
DOPRI5_ERROR = (
    71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40,
)  # fmt: skip
# weight of stage i at y(t + θh) is the polynomial of its row in θ, θ², θ³, θ⁴ (Shampine)
DOPRI5_DENSE = (
    (1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
    (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
    (0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
    (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
    (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
)
