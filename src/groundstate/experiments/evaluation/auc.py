r"""The area under the ROC curve counts ordered pairs and sees nothing else."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit
from scipy.stats import mannwhitneyu
from sklearn.metrics import log_loss, roc_curve

from groundstate.compute.random import Key
from groundstate.evaluate import bayes_threshold, threshold_table
from groundstate.evaluate.metrics import reliability
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, I64
from groundstate.math.stats import auc as area

COST = [[0.0, 9.0], [1.0, 0.0]]  # a lost letter is nine times as bad as a spam that comes through


def cost_at(y: I64, p: F64, delta: float) -> float:
    """Mean cost of the rule p ≥ δ."""
    decided = (p >= delta).astype(np.int64)
    return float(np.asarray(COST)[y, decided].mean())


@experiment("EVA-X-auc", theme="evaluation", title="AUC is blind to scale, calibration and costs")
def auc(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\mathrm{AUC} = P(s_+ > s_-) + \tfrac12P(s_+ = s_-)`: the share of ordered pairs, the area
    below the ROC curve and Mann and Whitney's :math:`U/n_0n_1` are one number. Any increasing
    transform of the scores keeps it, and so it says nothing about calibration, thresholds or costs:
    an AUC of 1 goes with an accuracy of ½ when all scores are on one side of ½.

    400 rows with rounded scores (for ties); the calibrated probabilities of 4,000 rows and two
    transforms of them; two perfect rankings; letters where a false alarm costs 9 and a miss 1.
    """
    key = Key.of(seed)
    rng = key.fold("pairs").numpy()
    y = (rng.random(400) < 0.3).astype(np.int64)
    s = np.round(rng.standard_normal(400) + y, 1)
    up, down = s[y == 1][:, None], s[y == 0]
    pairs = float(((up > down) + 0.5 * (up == down)).mean())
    fpr, tpr, _ = roc_curve(y, s, drop_intermediate=False)
    trapezoid = float(np.trapezoid(tpr, fpr))
    u = float(mannwhitneyu(s[y == 1], s[y == 0]).statistic) / (up.size * down.size)

    rng = key.fold("calibrated").numpy()
    p = expit(2 * rng.standard_normal(4000))
    t = (rng.random(4000) < p).astype(np.int64)
    kinds = {"as it is": p, "logit × 4": expit(4 * logit(p)), "cubed": p**3}
    areas = {name: area(t, q) for name, q in kinds.items()}
    losses = {name: float(log_loss(t, q)) for name, q in kinds.items()}

    labels = np.repeat([0, 1], 100)
    near = key.fold("sides").numpy().random(200) / 10
    sides = {"all above ½": 0.6 + 0.2 * labels + near, "all below ½": 0.1 + 0.2 * labels + near}
    wrong = {name: float(((q >= 0.5) == labels).mean()) for name, q in sides.items()}
    fixed = {name: float(threshold_table(labels, q).accuracy.max()) for name, q in sides.items()}
    best = bayes_threshold(COST)
    costs = {
        f"{name}, δ = {d:g}": cost_at(t, kinds[name], d)
        for name in ("as it is", "cubed")
        for d in (0.5, best)
    }
    claims = [
        Claim.at_most("pairs less trapezoid", abs(pairs - trapezoid), 1e-12),
        Claim.at_most("pairs less U", abs(pairs - u), 1e-12),
        Claim.at_most("pairs less evaluate's AUC", abs(pairs - area(y, s)), 1e-12),
        Claim.equal("AUC under transforms", len(set(areas.values())), 1),
        Claim.above(
            "log loss of logit × 4 less that as it is",
            losses["logit × 4"] - losses["as it is"],
            0.0,
        ),
        Claim.above("log loss cubed less that as it is", losses["cubed"] - losses["as it is"], 0.0),
        *[Claim.equal(f"{n}: AUC", area(labels, q), 1.0) for n, q in sides.items()],
        *[Claim.equal(f"{n}: accuracy at ½", v, 0.5) for n, v in wrong.items()],
        *[Claim.equal(f"{n}: accuracy at its own threshold", v, 1.0) for n, v in fixed.items()],
        Claim.close("threshold for costs 9 to 1", best, 0.9, tol=1e-12),
        Claim.above(
            "cost at ½ less cost at .9, same AUC",
            costs["as it is, δ = 0.5"] - costs["as it is, δ = 0.9"],
            0.0,
        ),
        Claim.above(
            "cost at .9 of the cubed less that of the calibrated, same AUC",
            costs["cubed, δ = 0.9"] - costs["as it is, δ = 0.9"],
            0.0,
        ),
    ]
    numbers = {"pairs": pairs, "areas": areas, "log loss": losses, "costs": costs}

    def draw(figure: Figure) -> None:
        strips, curve = figure.subplots(1, 2)
        shown = {
            "overlapping": (y[:200], expit(s[:200])),
            **{n: (labels, q) for n, q in sides.items()},
        }
        for row, (own, q) in enumerate(shown.values()):
            order = np.argsort(q, kind="stable")
            place = np.linspace(0, 1, len(q))
            colours = np.where(own[order] == 1, COLOURS[1], COLOURS[0])
            strips.scatter(place, 2 * row + q[order], s=5, c=colours)
            strips.hlines(2 * row + 0.5, 0, 1, color=COLOURS[5], linestyle=":", linewidth=0.8)
        strips.set(
            yticks=[0.5, 2.5, 4.5],
            yticklabels=list(shown),
            xlabel="place among the sorted",
            title="scores, coloured by class; dots at ½",
        )
        for (name, q), colour in zip(kinds.items(), COLOURS):
            found = reliability(t, q, 10)
            curve.plot(
                found.predicted,
                found.observed,
                "o-",
                color=colour,
                markersize=3,
                label=f"{name}: AUC {areas[name]:.3f}, log loss {losses[name]:.3f}",
            )
        curve.plot([0, 1], [0, 1], ":", color=COLOURS[5])
        curve.set(xlabel="foretold", ylabel="happened", title="one AUC, three calibrations")
        curve.legend()

    return Result(claims, numbers, draw, size=(9.5, 3.8))
