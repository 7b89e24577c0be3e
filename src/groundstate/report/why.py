"""What the model looks at, and profiles of the columns: sections and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.data.messages import listing
from groundstate.report.cells import Keyed, Range, at, table_of, words_of
from groundstate.report.style import ACCENT, INK, LINE, MUTED
from groundstate.report.svg import Picture, inline_svg
from groundstate.study.numbers import label, show_beside, show_cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BARS = 15
_SMALL = 24
_MEASURES = {"spearman": "rank correlation", "eta": "η", "cramer_v": "Cramér’s V"}


def draw(facts: dict[str, Any]) -> list[Picture]:
    """The pictures that there are numbers for."""
    found = facts.get("explained") or {}
    drawn = []
    if found.get("importance", {}).get("columns"):
        drawn.append(_importance(found))
    if found.get("dependence"):
        drawn.append(_dependence(found["dependence"], facts, found.get("impossible", [])))
    profiles = (facts.get("columns") or {}).get("profiles") or []
    shown = [p for p in profiles if p["counts"] or p["levels"]][:_SMALL]
    return [*drawn, _profiles(shown)] if shown else drawn


def importance(facts: dict[str, Any]) -> str:
    """Columns by how much the loss rises without them."""
    found = (facts.get("explained") or {}).get("importance")
    if not found or not found["columns"]:
        return ""
    shown = found["columns"][:_BARS]
    largest = max(abs(entry["value"]) for entry in shown)
    rows = []
    for i, entry in enumerate(shown):
        key = f"explained.importance.columns.{i}"
        value, low, high = (
            Keyed(f"{key}.{part}", show_beside(entry[part], largest))
            for part in ("value", "lo", "hi")
        )
        rows.append((", ".join(entry["columns"]), value, Range((low, " to ", high))))
    name = label(found["loss"])
    what = "fall of the score" if found["loss"] == "accuracy" else "rise of the loss"
    header = ("columns", f"{what} ({name})", f"{facts['explained']['level']:.0%} interval")
    words = (
        f"How much worse {found['rows']:,} held-out rows are predicted when a column is shuffled among "
        "them; columns that go together are shuffled together, since one would stand in for another. "
        "An interval that holds zero: the model would be as good without."
    )
    return table_of(header, rows, (1,)) + words_of(words)


def profiles(facts: dict[str, Any]) -> str:
    """Missing cells, outliers and the relation to the target of every column."""
    found = facts.get("columns") or {}
    rows = []
    for i, p in enumerate(found.get("profiles", [])):
        key, relation = f"columns.profiles.{i}", p["relation"]
        middle: Any = ""
        if p["quantiles"] and p["kind"] == "numeric":
            middle = Keyed(f"{key}.quantiles.3", show_cell(p["quantiles"][3]))
        goes: Any = ""
        if relation is not None:
            goes = (f"{_MEASURES[relation['measure']]} ", at(facts, f"{key}.relation.value"))
        p_value = "" if relation is None else at(facts, f"{key}.relation.p_corrected", "p")
        odd = Keyed(f"{key}.outliers", f"{p['outliers']:,}") if p["outliers"] else ""
        gone = at(facts, f"{key}.missing_share", "accuracy") if p["missing"] else ""
        distinct = Keyed(f"{key}.distinct", f"{p['distinct']:,}")
        kind = f"{p['kind']}, target" if p["name"] == facts["data"]["target"] else p["kind"]
        rows.append((p["name"], kind, distinct, gone, odd, middle, goes, p_value))
    if not rows:
        return ""
    header = ("column", "kind", "distinct", "missing", "outliers", "median", "with the target",
              "p, corrected")  # fmt: skip
    shown = table_of(header, rows[:200], (2, 3, 4, 5, 7), stacked=False)
    if len(rows) > 20:
        shown = f"<details><summary>All {len(rows):,} columns</summary>{shown}</details>"
    words = (
        "Outliers lie more than three interquartile ranges outside the quartiles; p is the chance of "
        "such a relation where there is none, corrected for looking at all columns."
    )
    moved = found.get("drift")
    return shown + words_of(words) + (words_of(f"Test rows: {moved['sentence']}") if moved else "")


def _importance(found: dict[str, Any]) -> Picture:
    entries = found["importance"]["columns"][:_BARS][::-1]
    name = label(found["importance"]["loss"])

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.grid(axis="x")
        axes.axvline(0, color=LINE, linewidth=1)
        for y, entry in enumerate(entries):
            sure = entry["lo"] > 0
            axes.barh(y, entry["value"], height=0.3, color=ACCENT if sure else MUTED, alpha=0.35)
            axes.plot([entry["lo"], entry["hi"]], [y, y], color=ACCENT if sure else MUTED)
            axes.plot(entry["value"], y, "o", color=ACCENT if sure else MUTED, markersize=5)
            axes.annotate(_short(", ".join(entry["columns"]), 48), (0, y), (0, 6),
                          xycoords=("axes fraction", "data"), textcoords="offset points",
                          va="bottom", fontsize=9)  # fmt: skip
        axes.set_yticks([])
        axes.set_ylim(-0.6, len(entries) - 0.2)
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel(f"{name}: how much worse without the column")
        axes.spines["left"].set_visible(False)

    caption = (
        f"Importance on held-out rows with {found['level']:.0%} intervals, over rows and over shuffles. "
        "Grey ones cannot be distinguished from zero."
    )
    data = {
        "columns": [", ".join(e["columns"]) for e in entries],
        "value": [e["value"] for e in entries],
    }
    drawn = inline_svg("importance", (5.0, 1.0 + 0.48 * len(entries)), paint)
    return Picture("importance", "What the model looks at", caption, drawn, data)


def _dependence(
    curves: list[dict[str, Any]], facts: dict[str, Any], impossible: list[str]
) -> Picture:
    width = 2 if len(curves) > 1 else 1
    height = -(-len(curves) // width)
    k = len(curves[0]["outputs"]) - 1 if len(curves[0]["outputs"]) == 2 else 0
    many = len(curves[0]["outputs"]) > 2
    about = curves[0]["outputs"][k]

    def paint(figure: Figure) -> None:
        panels = np.atleast_1d(figure.subplots(height, width, sharey=True)).ravel()
        for axes, curve in zip(panels, curves, strict=False):
            _one(axes, curve, k, many)
        for axes in panels[len(curves) :]:
            axes.set_visible(False)
        if many:
            names = [_short(str(name), 14) for name in curves[0]["outputs"]]
            figure.legend(panels[0].lines, names, loc="outside upper left", ncols=4, fontsize=8)

    units = {"probability": f"probability of {about}", "value": "predicted value"}
    what = "probability of each class" if many else units.get(curves[0]["units"], "score")
    caption = (
        f"Partial dependence: the mean {what} of held-out rows when one column is set to a value and "
        "the others stay" + ("." if many else "; thin lines are single rows.")
    )
    if impossible:
        caption += (
            f" Not drawn: {listing(impossible)}, which set alone make rows that do not exist."
        )
    data = {c["column"]: {"grid": c["grid"], "average": c["average"]} for c in curves}
    above = 0.22 * -(-len(curves[0]["outputs"]) // 4) if many else 0.0
    drawn = inline_svg("dependence", (5.0, 2.1 * height + 0.3 + above), paint)
    return Picture("dependence", "How the most important columns act", caption, drawn, data)


def _one(axes: Axes, curve: dict[str, Any], k: int, many: bool) -> None:
    average = np.asarray(curve["average"])
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in curve["grid"])
    x = np.asarray(curve["grid"], float) if numbers else np.arange(len(curve["grid"]))
    if many:
        from groundstate.report.style import GROUPS

        for j in range(average.shape[1]):
            axes.plot(x, average[:, j], color=GROUPS[j % len(GROUPS)], linewidth=1.5,
                      marker="" if numbers else "o", markersize=4)  # fmt: skip
    else:
        for single in curve.get("curves", []):
            axes.plot(x, np.asarray(single)[:, k], color=MUTED, linewidth=0.6, alpha=0.4)
        axes.plot(x, average[:, k], color=ACCENT, linewidth=2.2, marker="" if numbers else "o")
    if numbers:
        axes.locator_params(axis="x", nbins=4)
    else:
        step = max(1, len(x) // 5)
        axes.set_xticks(x[::step])
        axes.set_xticklabels([_short(str(v), 10) for v in curve["grid"][::step]], rotation=25,
                             ha="right", fontsize=7)  # fmt: skip
    axes.set_xlabel(_short(curve["column"], 26))


def _profiles(shown: list[dict[str, Any]]) -> Picture:
    width = 3
    height = -(-len(shown) // width)

    def paint(figure: Figure) -> None:
        panels = np.atleast_1d(figure.subplots(height, width)).ravel()
        for axes, p in zip(panels, shown, strict=False):
            if p["counts"]:
                edges, counts = np.asarray(p["edges"]), np.asarray(p["counts"])
                axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=ACCENT, alpha=0.5)
                axes.set_xticks([edges[0], edges[-1]])
                axes.set_xticklabels(_ends(p, edges), fontsize=6)
            else:
                names, times = zip(*p["levels"][:6], strict=True)
                axes.bar(range(len(names)), times, color=ACCENT, alpha=0.5)
                axes.set_xticks([])
                axes.set_xlabel(_short(", ".join(names), 24), fontsize=6)
            axes.set_yticks([])
            axes.set_title(_short(p["name"], 20), fontsize=8, color=INK)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)

    caption = (
        "How the values of each column are distributed; outliers are left out of the pictures."
    )
    data = {p["name"]: {"counts": p["counts"], "levels": p["levels"]} for p in shown}
    drawn = inline_svg("profiles", (5.0, 1.25 * height + 0.2), paint)
    return Picture("profiles", "Columns at a glance", caption, drawn, data)


def _ends(p: dict[str, Any], edges: Any) -> list[str]:
    if p["kind"] != "date":
        return [f"{edges[0]:.4g}", f"{edges[-1]:.4g}"]
    days = np.array([edges[0], edges[-1]]).astype("int64").astype("datetime64[D]")
    return [str(day) for day in days]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
