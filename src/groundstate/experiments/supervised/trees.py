r"""ID3 and C4.5 by hand: gains, ratios, missing values and pruning."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.math.info import entropy, gain_ratio, information_gain
from groundstate.models.trees.c45_classifier import C45Classifier
from groundstate.models.trees.id3_classifier import ID3Classifier

COVID = (("YYY", "Y", 2), ("YYN", "N", 2), ("YYN", "Y", 1), ("YNY", "Y", 3), ("NNN", "N", 1),
         ("NYN", "N", 2), ("NYY", "Y", 2), ("NYY", "N", 1))  # fmt: skip
SYMPTOMS = ("fever", "cough", "breathing")
TENNIS = ("shhwn", "shhsn", "ohhwy", "rmhwy", "rcnwy", "rcnsn", "ocnsy", "smhwn", "scnwy", "rmnwy",
          "smnsy", "omhsy", "ohnwy", "rmhsn")  # fmt: skip
WEATHER = ("outlook", "temperature", "humidity", "wind")


def covid() -> tuple[Any, Any]:
    """14 people: three symptoms and whether they are infected."""
    rows = [(list(x), y) for x, y, times in COVID for _ in range(times)]
    return np.array([x for x, _ in rows], dtype=object), np.array([y for _, y in rows])


def tennis() -> tuple[Any, Any]:
    """14 days: the weather and whether tennis was played."""
    days = np.array([list(day) for day in TENNIS], dtype=object)
    return days[:, :4], days[:, 4].astype(str)


def questions(model: Any) -> list[int]:
    """The column each inner node asks for, breadth first."""
    asked = model.energy_.attribute[model.energy_.answers > 0]
    return [int(j) for j in asked]


def leaves(model: Any) -> int:
    """Number of leaves."""
    return int((model.energy_.answers == 0).sum())


@experiment("SUP-X-trees", theme="supervised", title="ID3 and C4.5 worked examples")
def trees(seed: int = 0, *, quick: bool = False) -> Result:
    r"""ID3 asks for the column of largest :math:`IG = H(y) - \sum_v\frac{n_v}nH(y \mid v)`; a column of
    row numbers has the largest of all. C4.5 divides by :math:`-\sum_v\frac{n_v}n\log_2\frac{n_v}n`,
    sends rows with missing values down all branches, and prunes what does not lower the predicted
    errors.

    The tables of 14 people and of 14 days; row numbers as a fifth column, and 200 rows where one
    column makes the label but for 10 %; labels that are a coin with p = 0.3. (A fair coin and columns
    of numbers, which can be cut anywhere, fool the pruning; the number is reported.)
    """
    X, y = covid()
    gains = [information_gain(y, X[:, j]) for j in range(3)]
    ratios = [gain_ratio(y, X[:, j]) for j in range(3)]
    breath = {v: information_gain(y[X[:, 2] == v], X[X[:, 2] == v, 0]) for v in "YN"}
    tree = ID3Classifier().fit(X, y)
    answers = [str(tree.predict(np.array([[f, "Y", b]], dtype=object))[0])
               for b, f in ("YY", "YN", "NY", "NN")]  # fmt: skip
    D, play = tennis()
    numbered = np.arange(14).astype(str)
    outlook = [f(play, D[:, 0]) for f in (information_gain, gain_ratio)]
    lead = [f(play, numbered) / o for f, o in zip((information_gain, gain_ratio), outlook)]

    rng = Key.of(seed).fold("rows").numpy()
    true = rng.permutation(200) % 2
    label = np.where(rng.permutation(200) < 20, 1 - true, true)
    many = np.column_stack([np.arange(200), true, rng.integers(0, 3, 200), rng.integers(0, 2, 200)])
    rows = many.astype(str).astype(object)
    by_gain, by_ratio = ID3Classifier().fit(rows, label), C45Classifier().fit(rows, label)
    scores = [gain_ratio(label, many[:, j]) for j in (1, 0)]

    days = C45Classifier(prune=False).fit(D, play)
    blank = D[:1].copy()
    blank[0, 0] = None
    sides = np.repeat(D[:1], 3, axis=0)
    sides[:, 0] = ["o", "r", "s"]
    shares = np.array([(D[:, 0] == v).mean() for v in "ors"])
    mixed = float(np.abs(days.predict_proba(blank)[0] - shares @ days.predict_proba(sides)).max())

    noise = rng.integers(0, 2, (400, 4)).astype(str).astype(object)
    coin = (rng.permutation(400) < 120).astype(np.int64)
    pruned = C45Classifier().fit(noise, coin)
    grown = C45Classifier(prune=False).fit(noise, coin)
    fooled = C45Classifier().fit(rng.standard_normal((400, 4)), rng.permutation(400) % 2)
    asked = [SYMPTOMS[j] for j in questions(tree)[:3]]
    results = {
        "entropy of the people's labels": (entropy([8, 6], base=2), 0.985228),
        **{f"gain of {s}": (g, e) for s, g, e in zip(SYMPTOMS, gains, (0.128085, 0.039149, 0.396039))},
        **{f"ratio of {s}": (r, e) for s, r, e in zip(SYMPTOMS, ratios, (0.130006, 0.045357, 0.401977))},
        "gain of fever where breathing is hard": (breath["Y"], 0.199204),
        "gain of fever where it is not": (breath["N"], 0.190875),
    }  # fmt: skip
    claims = [Claim.close(text, v, e, tol=1e-6) for text, (v, e) in results.items()]
    claims += [
        Claim.equal("ID3: questions", asked, ["breathing", "fever", "fever"]),
        Claim.equal("ID3: answers for breathing, fever = YY, YN, NY, NN", answers, ["Y", "Y", "N", "N"]),
        Claim.close("row numbers against outlook, by gain", lead[0], 3.81, tol=0.005),
        Claim.close("row numbers against outlook, by ratio", lead[1], 1.58, tol=0.005),
        Claim.equal("200 rows: first question by gain and by ratio (0: row number, 1: the true one)",
                    [questions(by_gain)[0], questions(by_ratio)[0]], [0, 1]),
        Claim.close("200 rows: ratio of the true column", scores[0], 0.53, tol=0.02),
        Claim.close("200 rows: ratio of the row number", scores[1], 0.13, tol=0.005),
        Claim.at_most("missing outlook: distance from the mixture of the branches", mixed, 1e-9),
        Claim.equal("labels of noise: leaves after pruning", leaves(pruned), 1),
        Claim.at_least("labels of noise: leaves before", leaves(grown), 10),
    ]  # fmt: skip
    numbers = {"gains": gains, "ratios": ratios, "lead": lead, "200 rows": scores,
               "leaves": [leaves(grown), leaves(pruned)],
               "leaves, fair coin and numbers": leaves(fooled)}  # fmt: skip

    def draw(figure: Figure) -> None:
        figure.set_layout_engine("none")  # its solver is not the same to the last digit every time
        edges = {"left": 0.01, "right": 0.99, "bottom": 0.02, "top": 0.92, "wspace": 0.05}
        axes = figure.subplots(1, 3, width_ratios=(1, 1.5, 0.5), gridspec_kw=edges)
        _tree(axes[0], tree, SYMPTOMS, "ID3: infected?")
        _tree(axes[1], days, WEATHER, "C4.5: tennis?")
        _tree(axes[2], by_ratio, ("number", "true", "a", "b"), "C4.5 on 200 rows")

    return Result(claims, numbers, draw, size=(12.5, 4.2))


def _tree(ax: Axes, model: Any, names: tuple[str, ...], title: str) -> None:
    """Questions above, leaves side by side."""
    e = model.energy_
    place: dict[int, tuple[float, float]] = {}
    free = 0.0

    def put(v: int, depth: int) -> float:
        nonlocal free
        below = [int(e.first[v]) + c for c in range(int(e.answers[v]))]
        if below:
            x = float(np.mean([put(c, depth + 1) for c in below]))
        else:
            x, free = free, free + 1.0
        place[v] = (x, -float(depth))
        return x

    put(0, 0)
    for v, (x, height) in place.items():
        asks = int(e.answers[v]) > 0
        j = int(e.attribute[v])
        words = names[j] if asks else str(model.classes_[int(e.value[v].argmax())])
        colour = "#eef2f7" if asks else COLOURS[int(e.value[v].argmax())] + "55"
        box = {"boxstyle": "round", "facecolor": colour, "linewidth": 0.6}
        ax.text(x, height, words, ha="center", va="center", fontsize=7, bbox=box, zorder=3)
        for c in range(int(e.answers[v])):
            a, b = place[int(e.first[v]) + c]
            ax.plot([x, a], [height, b], color="black", linewidth=0.7, zorder=1)
            ax.text((x + a) / 2, (height + b) / 2, str(model._levels[j][c]), fontsize=6, ha="center",
                    va="center", zorder=2, bbox={"facecolor": "white", "linewidth": 0, "pad": 0.5})  # fmt: skip
    ax.set(
        title=title,
        xlim=(-0.7, max(free - 0.3, 0.7)),
        ylim=(min(h for _, h in place.values()) - 0.4, 0.4),
    )
    ax.set_axis_off()
