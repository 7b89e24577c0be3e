r"""A lift makes rows separable."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, dots
from groundstate.math.kernels.feature_maps import Lift
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.svm.svc import SVC
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier

PRODUCT = Lift(lambda X: np.column_stack([X, X[:, 0] * X[:, 1]]))
PARABOLA = Lift(lambda X: np.column_stack([X, (X**2).sum(1)]))
EDGE = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.6, 0.8], [-0.8, 0.6]])


def disc(rng: np.random.Generator, n: int) -> tuple[F64, Any]:
    """Rows with r² ≤ 1 (the edge included) and rows of a ring around them."""
    angle = rng.uniform(0, 2 * np.pi, n)
    inside = np.arange(n) % 2 == 0
    r = np.sqrt(np.where(inside, rng.uniform(0, 0.95, n), rng.uniform(1.2, 3.0, n)))
    X = np.vstack([EDGE, r[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])])
    return X, np.append(np.ones(len(EDGE), dtype=np.int64), inside.astype(np.int64))


@experiment("SUP-X-lift", theme="supervised", title="A lift makes data separable")
def lift(seed: int = 0, *, quick: bool = False) -> Result:
    r"""No line separates XOR or a disc from its surroundings; a plane does after
    :math:`(x_1, x_2) \mapsto (x_1, x_2, x_1x_2)` and :math:`(x_1, x_2, x_1^2 + x_2^2)`. For the disc
    the last coordinate alone decides: inside iff :math:`x_1^2 + x_2^2 \le 1`, edge included.

    Rows in the four quadrants away from the axes, and a disc with points on its edge in a ring. A
    linear machine and a logistic regression before, a hard margin and one cut of a tree after.
    """
    key = Key.of(seed)
    rng = key.fold("xor").numpy()
    signs = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]])[np.arange(200) % 4]
    corner = signs * rng.uniform(0.15, 1.5, (200, 2))
    xor = (signs.prod(1) < 0).astype(np.int64)
    round_, inner = disc(key.fold("disc").numpy(), 200)
    scenes = {"XOR": (corner, xor, PRODUCT), "disc": (round_, inner, PARABOLA)}
    before, after, planes = {}, {}, {}
    for name, (X, y, up) in scenes.items():
        flat = [SVC(kernel="linear").fit(X, y), LogisticRegression().fit(X, y)]
        before[name] = max(float(m.score(X, y)) for m in flat)
        planes[name] = SVC(kernel="linear", C=np.inf, tol=1e-6).fit(up(X), y)
        after[name] = float(planes[name].score(up(X), y))
    radius = (round_**2).sum(1)
    rule = float(((radius <= 1).astype(np.int64) == inner).mean())
    cut = DecisionTreeClassifier(max_depth=1, random_state=0).fit(radius[:, None], inner)
    z = PRODUCT(corner)
    gram = float(np.abs(PRODUCT.kernel(corner, corner) - z @ z.T).max())
    claims = [
        *[Claim.at_most(f"{n}: best linear accuracy before", v, 0.75) for n, v in before.items()],
        *[Claim.close(f"{n}: accuracy after the lift", v, 1.0, tol=0.0) for n, v in after.items()],
        Claim.close("disc: accuracy of r² ≤ 1, edge included", rule, 1.0, tol=0.0),
        Claim.close("disc: accuracy of one cut in r²", float(cut.score(radius[:, None], inner)), 1.0, tol=0.0),
        Claim.at_most("kernel of the lift against ⟨φ(x), φ(z)⟩", gram, 1e-12),
    ]  # fmt: skip
    numbers = {"before": before, "after": after, "cut": float(cut.tree_.threshold[0])}

    def draw(figure: Figure) -> None:
        for k, (name, (X, y, up)) in enumerate(scenes.items()):
            left = figure.add_subplot(1, 4, 2 * k + 1)
            dots(left, X, y)
            left.set(title=f"{name}: linear {before[name]:.2f}", aspect="equal")
            right: Any = figure.add_subplot(1, 4, 2 * k + 2, projection="3d")
            high = up(X)
            for c in (0, 1):
                right.scatter(*high[y == c].T, s=6, color=COLOURS[c], depthshade=False)
            w, b = planes[name].coef_[0], float(planes[name].intercept_[0])
            s = np.linspace(X.min(), X.max(), 12)
            A, B = np.meshgrid(s, s)
            right.plot_surface(
                A, B, -(w[0] * A + w[1] * B + b) / w[2], color=COLOURS[5], alpha=0.35
            )
            right.set(title=f"lifted: {after[name]:.2f}", zlim=(high[:, 2].min(), high[:, 2].max()))
            right.view_init(18, -60)

    return Result(claims, numbers, draw, size=(13.0, 3.6))
