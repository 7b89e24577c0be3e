r"""Only support vectors matter, and logistic regression ends at the same direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, clouds, dots, levels
from groundstate.models.discriminant.linear_discriminant_analysis import LinearDiscriminantAnalysis
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.linear.stochastic.perceptron import Perceptron
from groundstate.models.svm.linear_svc import LinearSVC
from groundstate.models.svm.svc import SVC

CS = tuple(10.0**k for k in range(9))
TABLES = 8
CENTRES = [[-1.5, -1.0], [1.5, 1.0]]


def distance(w: F64, b: float, X: F64, t: F64) -> float:
    """Signed distance of the worst row from the plane."""
    return float((t * (X @ w + b)).min() / np.linalg.norm(w))


def separable(key: Key) -> tuple[F64, NDArray[np.int64], F64]:
    """80 rows in two classes with a gap between them, whose means mislead; labels as 0/1 and ±1."""
    rng = key.numpy()
    y = np.arange(80) % 2
    t = np.where(y == 1, 1.0, -1.0)
    across = t * rng.uniform(0.5, 4.0, 80)
    return np.column_stack([across, 0.9 * across + rng.uniform(-2, 2, 80)]), y, t


def turning(X: F64, y: NDArray[np.int64], t: F64, w: F64) -> list[tuple[float, float, float]]:
    """Of logistic regression at every C: cosine with the widest margin's direction, norm, distance."""
    seen = []
    for C in CS:
        # at the optimum the two parts of the gradient are of size ‖w‖/(80 C): tol goes below them
        model = LogisticRegression(C=C, tol=1e-4 / C, max_iter=1000).fit(X, y)
        v = model.coef_[0]
        size = float(np.linalg.norm(v))
        cosine = float(v @ w / size / np.linalg.norm(w))
        seen.append((cosine, size, distance(v, float(model.intercept_[0]), X, t)))
    return seen


@experiment("SUP-X-margin", theme="supervised", title="Only support vectors matter", slow=True)
def margin(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The hard margin :math:`\min\tfrac12\|w\|^2` s.t. :math:`t_i(w^\top x_i + b) \ge 1` has the
    largest smallest distance, :math:`1/\|w\|`, and depends on the rows at that distance alone.
    Unpenalised logistic regression has no optimum on separable rows: as :math:`C \to \infty` its
    weights grow and turn towards the widest margin.

    80 separable points; the machine once more without the others; logistic regression with C from
    1 to 1e8 on these and on seven other draws, since a draw whose direction is right by chance at
    C = 1 can only turn away before it comes back. A soft margin on overlapping clouds marks slack
    below and above 1.
    """
    key = Key.of(seed)
    X, y, t = separable(key.fold("data"))
    hard = SVC(kernel="linear", C=np.inf, tol=1e-10).fit(X, y)
    kept = hard.support_
    again = SVC(kernel="linear", C=np.inf, tol=1e-10).fit(X[kept], y[kept])
    moved = float(max(np.abs(hard.coef_ - again.coef_).max(),
                      np.abs(hard.intercept_ - again.intercept_).max()))  # fmt: skip
    w = hard.coef_[0]
    widest = distance(w, float(hard.intercept_[0]), X, t)
    paths = [turning(X, y, t, w)]
    for i in range(1, TABLES):
        rows = separable(key.fold("data", i))
        paths.append(turning(*rows, SVC(kernel="linear", C=np.inf).fit(*rows[:2]).coef_[0]))
    cosines, norms, near = np.moveaxis(np.array(paths), 2, 0)  # (tables, C) each
    others = {f"logistic, C = {C:g}": float(d) for C, d in zip(CS, near[0])}
    for name, rival in (
        ("perceptron", Perceptron()),
        ("discriminant", LinearDiscriminantAnalysis()),
        ("LinearSVC", LinearSVC(random_state=0)),
    ):
        rival.fit(X, y)
        others[name] = distance(rival.coef_[0], float(rival.intercept_[0]), X, t)

    Z, label = clouds(key.fold("soft").numpy(), CENTRES, 1.25, 80)
    soft = SVC(kernel="linear", C=1.0).fit(Z, label)
    slack = np.maximum(0, 1 - np.where(label == 1, 1, -1) * soft.decision_function(Z))
    claims = [
        Claim.at_most("support vectors of 80 rows", len(kept), 6),
        Claim.at_most("refit on them: largest change of w and b", moved, 1e-6),
        Claim.close("smallest distance against 1/‖w‖", widest, float(hard.margin_[0]), tol=1e-6),
        Claim.at_least("smallest distance less the best of the others", widest - max(others.values()), 0.0),
        Claim.at_least("cosine of the logistic direction at C = 1e8, worst of 8 tables",
                       cosines[:, -1].min(), 0.99),
        Claim.above("its rise from C = 1, mean of 8 tables",
                    (cosines[:, -1] - cosines[:, 0]).mean(), 0.0),
        Claim.equal("‖w‖ grows with C", bool(np.all(np.diff(norms) > 0)), True),
    ]  # fmt: skip
    numbers = {"support": len(kept), "change": moved, "distance": widest, "others": others,
               "cosine": cosines.tolist(), "norm": norms.tolist()}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        dots(left, X, y)
        levels(left, X, hard.decision_function)
        _circled(left, X[kept], "black", "support vectors")
        _gap(left, w, float(hard.intercept_[0]))
        left.set_title(f"hard margin, gap 2/‖w‖ = {2 / np.linalg.norm(w):.2f}")
        dots(middle, Z, label)
        levels(middle, Z, soft.decision_function)
        _gap(middle, soft.coef_[0], float(soft.intercept_[0]))
        on = np.isin(np.arange(len(Z)), soft.support_)
        _circled(middle, Z[on & (slack <= 1e-2)], "black", "on the margin")
        _circled(middle, Z[(slack > 1e-2) & (slack <= 1)], COLOURS[2], "0 < ξ ≤ 1")
        _circled(middle, Z[slack > 1], COLOURS[4], "ξ > 1")
        middle.set_title(f"soft margin, gap {2 / np.linalg.norm(soft.coef_):.2f}")
        for ax in (left, middle):
            ax.set(xticks=[], yticks=[], aspect="equal")
            ax.legend(loc="lower right", fontsize=6)
        right.semilogx(CS, cosines[1:].T, color=COLOURS[0], linewidth=0.6, alpha=0.4)
        right.semilogx(CS, cosines[0], "o-", color=COLOURS[0], markersize=3)
        right.set(title="logistic direction against the margin's", xlabel="C", ylabel="cosine")
        twin = right.twinx()
        twin.loglog(CS, norms[0], "s--", color=COLOURS[1], markersize=3)
        twin.set_ylabel("‖w‖ (dashed)")

    return Result(claims, numbers, draw, size=(12.0, 3.8))


def _circled(ax: Axes, X: F64, colour: str, name: str) -> None:
    ax.scatter(
        X[:, 0], X[:, 1], s=45, facecolor="none", edgecolor=colour, linewidth=1.1, label=name
    )


def _gap(ax: Axes, w: F64, b: float) -> None:
    unit = w / np.linalg.norm(w)
    foot = -b * unit / np.linalg.norm(w) + 1.6 * np.array([unit[1], -unit[0]])
    ends = foot - unit / np.linalg.norm(w), foot + unit / np.linalg.norm(w)
    ax.annotate("", ends[1], ends[0], arrowprops={"arrowstyle": "<->", "linewidth": 1.0})
