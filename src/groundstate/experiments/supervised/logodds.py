r"""Log-odds are linear, odds and probabilities are not."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, clouds, is_falling
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression

SLOPE, OFFSET, ROWS, BINS = 1.5, -0.5, 20_000, 20
DELTAS = np.linspace(0.02, 0.98, 49)


def binned(x: F64, y: F64) -> tuple[F64, F64, F64]:
    """Middle, log-odds and their precision, for equally filled bins (half a count added)."""
    order = np.argsort(x, kind="stable")
    middles, found, precision = [], [], []
    for part in np.array_split(order, BINS):
        ones, n = y[part].sum() + 0.5, len(part) + 1.0
        p = ones / n
        middles.append(x[part].mean())
        found.append(np.log(p / (1 - p)))
        precision.append(n * p * (1 - p))
    return np.array(middles), np.array(found), np.array(precision)


@experiment(
    "SUP-X-logodds", theme="supervised", title="Log-odds are linear; δ trades recall", slow=True
)
def logodds(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Where :math:`p = \sigma(\theta_0 + \theta x)`, the log-odds :math:`\log\frac p{1-p} =
    \theta_0 + \theta x` are a line with the slope of the distribution, the odds
    :math:`e^{\theta_0+\theta x}` and p are not. Saying yes for p > δ, a larger δ never raises
    recall and buys precision.

    20,000 rows in 20 bins, the line through the bins against the slope that made the data, and a
    sweep of δ on the fitted probabilities. Three classes show the same with softmax.
    """
    rng = Key.of(seed).fold("data").numpy()
    x = rng.uniform(-3, 3, ROWS)
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-OFFSET - SLOPE * x))).astype(np.float64)
    middle, odds, precision = binned(x, y)
    steep = float(np.polyfit(middle, odds, 1, w=np.sqrt(precision))[0])
    model = LogisticRegression(C=np.inf).fit(x[:, None], y)
    p = model.predict_proba(x[:, None])[:, 1]
    recall = [float(y[p > d].sum() / y.sum()) for d in DELTAS]
    exact = [float(y[p > d].mean()) if (p > d).any() else 1.0 for d in DELTAS]
    at = {d: float(y[p > d].mean()) for d in (0.5, 0.9)}

    rows, label = clouds(Key.of(seed).fold("three").numpy(), [[-2.0], [0.0], [2.5]], 0.9, 600)
    three = LogisticRegression().fit(rows, label)
    t = np.linspace(-4.5, 4.5, 201)
    curves = three.predict_proba(t[:, None])
    off = float(np.abs(curves.sum(1) - 1).max())
    claims = [
        Claim.at_most("slope of the binned log-odds: relative error", abs(steep / SLOPE - 1), 0.05),
        Claim.at_most("fitted slope: relative error", abs(float(model.coef_[0, 0]) / SLOPE - 1), 0.05),
        Claim.equal("recall never rises with δ", is_falling(recall), True),
        Claim.above("precision at δ = .9 less that at .5", at[0.9] - at[0.5], 0.0),
        Claim.at_most("three classes: largest |Σp − 1|", off, 1e-12),
    ]  # fmt: skip
    numbers = {"binned slope": steep, "fitted slope": float(model.coef_[0, 0]), "recall": recall,
               "precision": exact, "precision at .5 and .9": list(at.values())}  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 4)
        f = OFFSET + SLOPE * t
        for ax, values, title in (
            (axes[0, 0], 1 / (1 + np.exp(-f)), "probability"),
            (axes[0, 1], np.exp(f), "odds"),
            (axes[0, 2], f, "log-odds"),
        ):
            ax.plot(t, values, color=COLOURS[5])
            own = {"probability": 1 / (1 + np.exp(-odds)), "odds": np.exp(odds), "log-odds": odds}
            ax.plot(middle, own[title], "o", color=COLOURS[0], markersize=3)
            ax.set(title=title, xlabel="x", xlim=(-3.2, 3.2))
        axes[0, 1].set_ylim(0, 70)
        axes[0, 2].set_ylim(-6, 5)
        bars, sigma = axes[0, 3], axes[1, 0]
        for k, q in enumerate((0.2, 0.5, 0.8)):
            bars.bar([2.5 * k, 2.5 * k + 1], [1 - q, q], color=(COLOURS[5], COLOURS[0]))
        bars.set(title="Bernoulli, p = .2, .5, .8", xticks=[0, 1, 2.5, 3.5, 5, 6], ylim=(0, 1),
                 xticklabels=["0", "1"] * 3)  # fmt: skip
        z = np.linspace(-6, 6, 200)
        sigma.plot(z, 1 / (1 + np.exp(-z)), color=COLOURS[0])
        for q in (0.2, 0.5, 0.8):
            at_z = np.log(q / (1 - q))
            sigma.plot([at_z, at_z, -6], [0, q, q], ":", color=COLOURS[1], linewidth=0.9)
        sigma.set(title="σ maps scores to p", xlabel="score", xlim=(-6, 6), ylim=(0, 1))
        axes[1, 1].plot(DELTAS, exact, color=COLOURS[0], label="precision")
        axes[1, 1].plot(DELTAS, recall, color=COLOURS[1], label="recall")
        axes[1, 1].set(title="threshold δ", xlabel="δ")
        axes[1, 1].legend()
        for k in range(3):
            axes[1, 2].plot(t, curves[:, k], color=COLOURS[k], label=f"class {k}")
        axes[1, 2].plot(t, curves.sum(1), ":", color="black", label="sum")
        axes[1, 2].set(title="three classes", xlabel="x")
        axes[1, 2].legend()
        _simplex(axes[1, 3])

    return Result(claims, numbers, draw, size=(12.0, 5.6))


def _simplex(ax: object) -> None:
    """Which of three probabilities is largest where, on the triangle of all of them."""
    from matplotlib.axes import Axes

    assert isinstance(ax, Axes)
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    third = np.ones(3) / 3
    for k in range(3):
        mids = [(np.eye(3)[k] + np.eye(3)[j]) / 2 for j in range(3) if j != k]
        cell = np.array([np.eye(3)[k], mids[0], third, mids[1]]) @ corners
        ax.fill(*cell.T, color=COLOURS[k], alpha=0.35)
        ax.text(
            float(cell[:, 0].mean()),
            float(cell[:, 1].mean()),
            f"class {k}",
            ha="center",
            va="center",
            fontsize=7,
        )
    ax.plot(*corners[[0, 1, 2, 0]].T, color="black", linewidth=0.8)
    ax.set(title="largest p on the simplex", aspect="equal")
    ax.set_axis_off()
