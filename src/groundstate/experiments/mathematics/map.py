r"""Columns are images, the determinant is an area."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import linalg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

A0 = np.array([[3.0, 1.0], [1.0, 2.0]])
SHEAR = np.array([[1.0, 1.0], [0.0, 1.0]])


def area(points: Any) -> float:
    """Signed area of a polygon ``(n, 2)`` by the shoelace formula."""
    x, y = points.T
    return float(0.5 * (x * np.roll(y, -1) - y * np.roll(x, -1)).sum())


def lattice(A: Any, reach: int = 3, fine: int = 2) -> list[Any]:
    """Lines of a grid and their images."""
    along = np.linspace(-reach, reach, 2 * reach * fine + 1)
    lines = []
    for c in range(-reach, reach + 1):
        lines += [
            np.stack([along, np.full_like(along, c)]),
            np.stack([np.full_like(along, c), along]),
        ]
    return [A @ line for line in lines]


@experiment(
    "MAT-x-map", theme="mathematics", title="Columns are images, the determinant is an area"
)
def map(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Column j of a matrix is the image of :math:`e_j`, and areas grow by :math:`\det A`:
    A₀ = [[3, 1], [1, 2]] makes 5 of 1, whatever the shape. The shear [[1, k], [0, 1]] keeps areas and
    the direction of :math:`e_1`, turns :math:`e_2`, and has no second eigenvector.

    The unit square, a circle of 4,000 points and a random polygon through A₀; the shear with k = 1.
    """
    rng = Key.of(seed).fold("polygon").numpy()
    angles = np.sort(rng.uniform(0, 2 * np.pi, 12))
    polygon = rng.uniform(0.5, 2.0, 12)[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    t = np.linspace(0, 2 * np.pi, 4000, endpoint=False)
    circle = np.stack([np.cos(t), np.sin(t)], 1)
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    growth = {
        name: area(shape @ A0.T) / area(shape)
        for name, shape in (("square", square), ("circle", circle), ("polygon", polygon))
    }
    images = linalg.identities["columns"](A0, A0, A0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = linalg.eig_report(SHEAR)
    warned = any(issubclass(w.category, Unreliable) for w in caught)
    turned = float(np.degrees(np.arccos((SHEAR @ [0.0, 1.0])[1] / np.sqrt(2))))
    radii = np.linalg.norm(circle @ A0.T, axis=1)
    values = linalg.eig_report(A0).values
    claims = [
        Claim.at_most("columns of A₀ are the images of e₁ and e₂: gap", images, 1e-12),
        *(Claim.close(f"area of the {name} grows by", g, 5.0, tol=1e-10) for name, g in growth.items()),
        Claim.close("longest radius of the ellipse is the larger eigenvalue", radii.max(), values[1], tol=1e-5),
        Claim.equal("the shear leaves (1, 0) where it is", (SHEAR @ [1.0, 0.0]).tolist(), [1.0, 0.0]),
        Claim.close("the shear turns (0, 1) by, in degrees", turned, 45.0, tol=1e-9),
        Claim.close("determinant of the shear", np.linalg.det(SHEAR), 1.0, tol=1e-12),
        Claim.equal("the shear is defective", bool(report.defective), True),
        Claim.equal("and the report warns", warned, True),
    ]  # fmt: skip
    numbers = {"growth": list(growth.values()), "turned": turned, "values": values.tolist(),
               "condition of the eigenvectors of the shear": float(min(report.condition, 1e300))}  # fmt: skip

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        for ax, A, title in zip(
            panels, (np.eye(2), A0, SHEAR), ("before", "A₀: area 1 becomes 5", "shear")
        ):
            for line in lattice(A):
                ax.plot(*line, color=COLOURS[5], linewidth=0.5)
            ax.plot(*(circle @ A.T).T, color=COLOURS[0], linewidth=1.2)
            ax.fill(*(square @ A.T).T, color=COLOURS[1], alpha=0.35)
            for e, colour in (([1.0, 0.0], COLOURS[4]), ([0.0, 1.0], COLOURS[0])):
                ax.annotate(
                    "", A @ e, (0, 0), arrowprops={"arrowstyle": "->", "color": colour, "lw": 2}
                )
            ax.set(title=title, xlim=(-5, 5), ylim=(-5, 5), aspect="equal", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(10.0, 3.5))
