"""Pictures of classifiers show the numbers they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from groundstate.evaluate import metrics
from groundstate.evaluate.metrics import displays

rng = np.random.default_rng(0)
y = rng.integers(2, size=120)
p = 1 / (1 + np.exp(-(2 * y - 1 + rng.normal(size=120))))


def axes() -> object:
    return Figure().add_subplot()


def test_roc_and_precision_recall() -> None:
    ax = axes()
    displays.draw_roc(ax, y, p, threshold=0.6)
    x, height = ax.lines[0].get_data()
    assert (x[0], height[0], x[-1], height[-1]) == (0, 0, 1, 1)
    assert (np.diff(x) >= 0).all() and (np.diff(height) >= 0).all()
    assert f"{metrics.auc(y, p):.4g}" in ax.get_title()
    mark = ax.lines[2].get_data()
    assert (float(mark[0][0]), float(mark[1][0])) == pytest.approx(
        ((p[y == 0] >= 0.6).mean(), (p[y == 1] >= 0.6).mean())
    )
    ax = axes()
    displays.draw_pr(ax, y, p)
    assert ax.lines[1].get_ydata()[0] == pytest.approx(y.mean())
    assert displays.curve_for(y) == "roc" and displays.curve_for([0] * 99 + [1]) == "pr"


def test_confusion_strip_and_reliability() -> None:
    ax = axes()
    displays.draw_confusion(ax, [[30, 20], [10, 40]], ["no", "yes"])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["no  60%", "yes  80%"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["no\n75%", "yes\n67%"]
    assert [t.get_text() for t in ax.texts] == ["30", "20", "10", "40"]
    ax = axes()
    displays.draw_strip(ax, y, p)
    assert sum(len(c.get_segments()) for c in ax.collections) == 120
    ax = axes()
    displays.draw_reliability(ax, y, p)
    assert len(ax.lines) >= 2
