"""Pictures of classifiers on matplotlib axes; the numbers are scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.evaluate.metrics.proper import reliability
from groundstate.math.stats.delong import auc_interval

_BLUE, _ORANGE, _GREY = "#3b6fb6", "#d9822b", "#999999"
RARE = 0.1  # below this share of positives precision and recall say more than the ROC curve


def curve_for(y: Any) -> str:
    """``"pr"`` when positives are rare (under a tenth), else ``"roc"``.

    >>> curve_for([0] * 95 + [1] * 5), curve_for([0, 1])
    ('pr', 'roc')
    """
    labels = np.asarray(y)
    return "pr" if float((labels == labels.max()).mean()) < RARE else "roc"


def draw_roc(ax: Any, y: Any, p: Any, threshold: float = 0.5) -> None:
    """The ROC curve with its area and interval, the chance diagonal and the chosen threshold."""
    from sklearn.metrics import roc_curve

    labels, score = np.asarray(y), np.asarray(p, np.float64)
    fpr, tpr, _ = roc_curve(labels, score, pos_label=labels.max())
    positive = labels == labels.max()
    ax.plot(fpr, tpr, color=_BLUE)
    ax.fill_between(fpr, tpr, color=_BLUE, alpha=0.15)
    ax.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8)
    called = score >= threshold
    ax.plot(called[~positive].mean(), called[positive].mean(), "o", color=_ORANGE,
            label=f"threshold {threshold:g}")  # fmt: skip
    ax.set(title=f"ROC area {auc_interval(labels, score)}", xlabel="false positive rate",
           ylabel="true positive rate")  # fmt: skip
    ax.legend(frameon=False, fontsize=8)


def draw_pr(ax: Any, y: Any, p: Any) -> None:
    """Precision against recall, with the share of positives as the line of a blind guess."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    labels, score = np.asarray(y), np.asarray(p, np.float64)
    top = labels.max()
    precision, recall, _ = precision_recall_curve(labels, score, pos_label=top)
    ax.step(recall, precision, where="post", color=_BLUE)
    ax.axhline(float((labels == top).mean()), color=_GREY, linewidth=0.8)
    area = average_precision_score(labels, score, pos_label=top)
    ax.set(title=f"average precision {area:.3g}", xlabel="recall", ylabel="precision")


def draw_strip(ax: Any, y: Any, p: Any) -> None:
    """Scores in order, coloured by class: a perfect ranking has two blocks."""
    labels, score = np.asarray(y), np.asarray(p, np.float64)
    order = np.argsort(score, kind="stable")
    positive = (labels == labels.max())[order]
    place = np.arange(len(score))
    for side, colour in ((False, _ORANGE), (True, _BLUE)):
        rows = positive == side
        ax.vlines(place[rows], 0, score[order][rows], color=colour, linewidth=1)
    ax.set(title="scores in order, by class", xlabel="row", ylabel="score")


def draw_confusion(ax: Any, table: Any, classes: Any = None) -> None:
    """Counts, rows actual and columns predicted; recall at the rows, precision at the columns."""
    counts = np.asarray(table, np.float64)
    k = len(counts)
    names = [str(c) for c in (range(k) if classes is None else classes)]
    with np.errstate(divide="ignore", invalid="ignore"):
        recall, precision = np.diag(counts) / counts.sum(1), np.diag(counts) / counts.sum(0)
        share = np.nan_to_num(counts / counts.sum(1, keepdims=True))
    ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for i in range(k):
        for j in range(k):
            dark = "white" if share[i, j] > 0.5 else "black"
            ax.text(j, i, f"{counts[i, j]:g}", ha="center", va="center", color=dark)
    ax.set_xticks(range(k), [f"{n}\n{_share(v)}" for n, v in zip(names, precision)])
    ax.set_yticks(range(k), [f"{n}  {_share(v)}" for n, v in zip(names, recall)])
    ax.set(xlabel="predicted, with precision", ylabel="actual, with recall")


def draw_reliability(ax: Any, y: Any, p: Any, n_bins: int = 10) -> None:
    """Share that happened against the probability predicted, with Wilson bars."""
    curve = reliability(y, p, n_bins)
    bars = [curve.observed - curve.low, curve.high - curve.observed]
    ax.errorbar(curve.predicted, curve.observed, bars, fmt="o-", color=_BLUE, capsize=2)
    ax.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8)
    ax.set(xlabel="predicted probability", ylabel="observed fraction")


def _share(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.0%}"
