"""Pictures of how good and how sure: drawn from plain data, which the report also holds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.report.style import ACCENT, GROUPS, LINE, MUTED, SECOND
from groundstate.report.svg import Picture, inline_svg
from groundstate.study.numbers import label as named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groundstate.study.assess import Assessment

_POINTS = 200  # a curve of more points looks the same
_CURVES = 6  # ROC curves of more classes cannot be told apart
_FEW = 2000


def of_probabilities(found: Assessment, facts: dict[str, Any]) -> list[Picture]:
    """ROC, precision and recall, and reliability, where there are probabilities or scores."""
    predicted, classes = found.prediction, found.classes
    if predicted.ranking is None or classes is None:
        return []
    wanted = facts["design"]["positive"]
    if len(classes) == 2:
        shown = [[str(c) for c in classes].index(wanted) if wanted is not None else 1]
    else:
        common = np.argsort(-np.bincount(found.truth.astype(np.intp), minlength=len(classes)))
        shown = sorted(common[:_CURVES].tolist())
    drawn = []
    curves = [
        (str(classes[k]), found.truth == k, predicted.ranking[:, k])
        for k in shown
        if 0 < (found.truth == k).sum() < len(found.truth)
    ]
    if curves:
        drawn += [roc(curves), precision_recall(curves)]
    return drawn


def of_facts(facts: dict[str, Any]) -> list[Picture]:
    """Calibration, coverage, spread, learning curve and tuning, as far as there are any."""
    drawn: list[Picture] = []
    sure = facts["calibration"] or {}
    if "bins" in sure:
        drawn.append(reliability(sure))
    if sure.get("coverage"):
        drawn.append(coverage(sure["coverage"]))
    moved = facts["variation"]
    if moved is not None:
        if ("oob" in moved and moved["train"]) or np.ptp([0.0, *_about(moved)]) > 1e-12:
            drawn.append(histograms(moved))
        if moved["train"] is not None:
            drawn.append(sources(moved))
    if facts["curve"] is not None:
        drawn.append(learning_curve(facts["curve"]))
    if facts["tuning"] is not None and len(facts["tuning"]["trials"]) > 1:
        drawn.append(tuning(facts["tuning"], facts["candidates"]))
    return drawn


def _about(moved: dict[str, Any]) -> list[float]:
    """Scores of several seeds less the first of them."""
    values = moved.get("seeds", {}).get("values", ())
    return [float(value) - float(values[0]) for value in values]


def _thin(*columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    keep = np.unique(np.linspace(0, len(columns[0]) - 1, _POINTS).astype(int))
    return tuple(column[keep] for column in columns)


Curves = list[tuple[str, NDArray[np.bool_], NDArray[np.float64]]]


def roc(curves: Curves) -> Picture:
    """True against false positive rate, one line per class."""
    from sklearn.metrics import roc_curve

    lines: list[dict[str, Any]] = []
    for name, hit, score in curves:
        fpr, tpr, _ = roc_curve(hit, score)
        fpr, tpr = _thin(fpr, tpr)
        lines.append({"class": name, "fpr": fpr, "tpr": tpr})

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=LINE, linewidth=1.0)
        for at, line in enumerate(lines):
            axes.plot(line["fpr"], line["tpr"], color=GROUPS[at % len(GROUPS)], label=line["class"])
        axes.set_xlabel("share of others taken for it")
        axes.set_ylabel("share of it found")
        axes.set_aspect("equal")
        axes.legend(loc="lower right")

    caption = (
        "For every possible threshold: how many of a class are found against how many others are "
        "taken for it. A curve near the upper left corner separates well, one on the diagonal not "
        "at all."
    )
    return Picture("roc", "Finding a class (ROC)", caption, inline_svg("roc", (5.6, 4.4), draw),
                   {"curves": lines})  # fmt: skip


def precision_recall(curves: Curves) -> Picture:
    """Precision against recall, one line per class."""
    from sklearn.metrics import precision_recall_curve

    lines: list[dict[str, Any]] = []
    for name, hit, score in curves:
        precision, recall, _ = precision_recall_curve(hit, score)
        recall, precision = _thin(recall, precision)
        lines.append({"class": name, "recall": recall, "precision": precision})

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for at, line in enumerate(lines):
            colour = GROUPS[at % len(GROUPS)]
            axes.step(line["recall"], line["precision"], where="post", color=colour,
                      label=line["class"])  # fmt: skip
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("share of it found (recall)")
        axes.set_ylabel("share right among those called it (precision)")
        axes.legend(loc="best")

    caption = (
        "The same as counts of calls: finding more of a class costs more false calls. Read this one "
        "when a class is rare."
    )
    return Picture("precision_recall", "Precision and recall", caption,
                   inline_svg("precision_recall", (6.4, 4.0), draw), {"curves": lines})  # fmt: skip


def reliability(sure: dict[str, Any]) -> Picture:
    """Share observed against share foretold."""
    bins = sure["bins"]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=LINE, linewidth=1.2)
        for x, low, high in zip(bins["predicted"], bins["lo"], bins["hi"]):
            axes.plot([x, x], [low, high], color=ACCENT, linewidth=1.4)
        axes.plot(bins["predicted"], bins["observed"], "o", color=ACCENT, markersize=6)
        axes.set_xlabel("probability the model gave")
        axes.set_ylabel("observed fraction")
        axes.set_aspect("equal")

    caption = (
        f"Probabilities for {sure['about']}, in groups of equally many rows, with what happened. On "
        "the line 70% means 70%; points below it are overconfident."
    )
    return Picture("reliability", "Can the probabilities be believed?", caption,
                   inline_svg("reliability", (5.6, 4.4), draw), bins)  # fmt: skip


def residuals(truth: NDArray[Any], predicted: NDArray[Any]) -> Picture:
    """Errors against predictions."""
    step = -(-len(truth) // _FEW)
    at, error = predicted[::step], (truth.astype(np.float64) - predicted)[::step]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axhline(0.0, color=LINE, linewidth=1.2)
        axes.plot(at, error, "o", color=ACCENT, alpha=0.5, markersize=4, markeredgewidth=0)
        axes.set_xlabel("predicted")
        axes.set_ylabel("true minus predicted")

    caption = (
        "What is left over. A cloud around the line without a shape is what to hope for; a bend or "
        "a funnel shows something the model misses."
    )
    return Picture("residuals", "What is left over", caption,
                   inline_svg("residuals", (6.5, 3.2), draw),
                   {"predicted": at, "residual": error})  # fmt: skip


def coverage(facts: dict[str, Any]) -> Picture:
    """Promised and measured coverage of sets or intervals for single rows."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axvline(facts["wanted"], color=SECOND, linewidth=1.4, label="promised")
        axes.plot([facts["lo"], facts["hi"]], [0, 0], color=ACCENT, solid_capstyle="round")
        axes.plot(facts["covered"], 0, "o", color=ACCENT, markersize=8, label="measured")
        axes.set_yticks([])
        axes.set_xlim(min(0.6, facts["lo"] - 0.05), 1.01)
        axes.set_xlabel("share of rows whose truth was inside")
        axes.spines["left"].set_visible(False)
        axes.legend(loc="upper left", ncols=2)

    what = "a set of classes" if facts["kind"] == "set" else "an interval"
    caption = (
        f"For every row the model can give {what} that holds the truth in {facts['wanted']:.0%} of "
        "cases (conformal prediction); measured on rows it had not seen."
    )
    return Picture("coverage", "Sets and intervals for single rows", caption,
                   inline_svg("coverage", (7.5, 1.7), draw), facts)  # fmt: skip


def histograms(moved: dict[str, Any]) -> Picture:
    """The score over seeds and over resampled training rows."""
    parts = []
    seeds = np.asarray(moved.get("seeds", {}).get("values", ()), float)
    if len(seeds) > 1 and np.ptp(seeds) > 1e-12:  # no spread, no picture
        parts.append(("other seeds", seeds))
    if "oob" in moved and moved["train"]:
        parts.append(("other training rows", np.asarray(moved["oob"]["values"], float)))
    data = {}
    for name, values in parts:
        counts, edges = np.histogram(values, min(20, max(5, len(values) // 4)))
        data[name] = {"counts": counts, "edges": edges}

    def draw(figure: Figure) -> None:
        every = np.atleast_1d(figure.subplots(1, len(parts), squeeze=False)[0])
        for axes, (name, _), colour in zip(every, parts, (SECOND, ACCENT)):
            edges = data[name]["edges"]
            axes.bar(edges[:-1], data[name]["counts"], np.diff(edges), align="edge", color=colour,
                     alpha=0.8)  # fmt: skip
            axes.set_title(name)
            axes.set_xlabel(moved["loss"])
            axes.locator_params(axis="x", nbins=3)

    caption = (
        "The same recipe again: with other random numbers, and with the training rows drawn again "
        "with repetition and judged on those left out. Wide means that the score was partly luck."
    )
    return Picture(
        "refits", "The same recipe again", caption, inline_svg("refits", (7.5, 2.8), draw), data
    )


def sources(moved: dict[str, Any]) -> Picture:
    """Standard deviation of the score by source."""
    names = {"test": "test rows", "seed": "seed", "train": "training rows"}
    parts = {words: moved[name] for name, words in names.items() if moved[name] is not None}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.barh(list(parts)[::-1], list(parts.values())[::-1], color=ACCENT, alpha=0.8)
        axes.set_xlabel(f"standard deviation of the {moved['loss']}")
        axes.tick_params(left=False)

    advice = moved.get("advice")
    caption = "How far the score moves with each source of chance" + (
        f": {advice}." if advice else "."
    )
    return Picture("sources", "Where the uncertainty comes from", caption,
                   inline_svg("sources", (7.5, 2.0), draw), parts)  # fmt: skip


def learning_curve(curve: dict[str, Any]) -> Picture:
    """Risk on seen and new rows against the number of training rows, with the forecast."""
    n = curve["n"]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour, label in (("train", MUTED, "seen rows"), ("test", ACCENT, "new rows")):
            band = curve[name]
            middle = [b["estimate"] for b in band]
            axes.plot(n, middle, "o-", color=colour, label=label, markersize=4)
            axes.fill_between(n, [_or(b["low"], b) for b in band], [_or(b["high"], b) for b in band],
                              color=colour, alpha=0.15, linewidth=0)  # fmt: skip
        ahead = curve["forecast"]
        if ahead is not None:
            points = ahead["points"]
            xs = [n[-1], *(p["n"] for p in points)]
            ys = [curve["test"][-1]["estimate"], *(p["estimate"] for p in points)]
            axes.plot(xs, ys, "--", color=SECOND, label="forecast")
            for p in points:
                axes.plot([p["n"], p["n"]], [p["low"], p["high"]], color=SECOND, linewidth=1.2)
        axes.set_xscale("log")
        _few_ticks(axes, [*n, *(p["n"] for p in (ahead or {}).get("points", ()))])
        axes.set_xlabel("training rows")
        axes.set_ylabel(named(str(curve["metric"])))
        axes.legend()

    caption = (
        "Loss on rows the model learned from and on new ones, as it gets more rows. A falling blue "
        "line says that more rows help; a wide gap between the lines says that it learns by heart."
    )
    return Picture("learning_curve", "Would more rows help?", caption,
                   inline_svg("learning_curve", (7.0, 3.6), draw), curve)  # fmt: skip


def _few_ticks(axes: Axes, at: list[int]) -> None:
    """Round numbers on a logarithmic axis, few enough that their labels do not touch."""
    from matplotlib.ticker import NullFormatter, NullLocator

    low, high = math.log10(min(at)), math.log10(max(at))
    steps = [m * 10**k for k in range(int(low), int(high) + 2) for m in (1, 2, 5)]
    inside = [step for step in steps if min(at) <= step <= max(at)] or [min(at), max(at)]
    shown = inside[:: -(-len(inside) // 5)]
    axes.set_xticks(shown, [f"{step:,}" for step in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def _or(value: float | None, band: dict[str, Any]) -> float:
    return float(band["estimate"] if value is None else value)


def tuning(facts: dict[str, Any], board: dict[str, Any]) -> Picture:
    """Score of every trial and the best so far, in the metric of the candidates."""
    score = np.array([np.nan if t["score"] is None else t["score"] for t in facts["trials"]])
    best = np.fmax.accumulate(score)
    if not board["greater_is_better"]:
        score, best = -score, -best
    at = np.arange(1, len(score) + 1)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(at, score, "o", color=MUTED, markersize=5)
        axes.step(at, best, where="post", color=ACCENT)
        axes.set_xlabel("trial")
        axes.locator_params(axis="x", integer=True)
        axes.set_ylabel(f"{named(board['metric'])}, validation rows")
        axes.grid(axis="y", alpha=0.6)

    caption = (
        "Settings tried one after another (dots) and the best so far (line); as the winner of "
        "many, the best one looks a little better than it is."
    )
    return Picture("tuning", "Tuning", caption, inline_svg("tuning", (7.5, 2.8), draw),
                   {"score": score, "best": best})  # fmt: skip
